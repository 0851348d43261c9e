"""Errors a user can cause: what happened, where, and what to do about it.

Every error carries a stable code (documented in docs/troubleshooting.md) and maps to an exit status:
2 for usage, 1 for data or run time. Anything else that escapes is a bug and keeps its traceback.
"""

from __future__ import annotations

import re

_HIDDEN = re.compile("[\\x00-\\x1f\\x7f-\\x9f\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069\\ud800-\\udfff]")
"""Control characters, line separators, changes of direction, and halves of surrogate pairs."""


class PacktoolError(Exception):
    """One clear error.

    Args:
        code: stable name, such as ``unknown-strategy``; documented, never reused.
        what: what is wrong, in a sentence without a final stop.
        remedy: what to do about it, in a sentence without a final stop.
        where: the option, file or ``file:line`` it is about.

    >>> print(UsageError("bad-seed", "-1 is negative", remedy="give an integer from 0", where="--seed"))
    --seed: -1 is negative. Give an integer from 0.
    """

    exit_code = 1

    def __init__(self, code: str, what: str, *, remedy: str, where: str | None = None) -> None:
        self.code = code
        self.what = what
        self.remedy = remedy
        self.where = where
        super().__init__(code, self.what, self.remedy, self.where)

    def __str__(self) -> str:
        return message(self.what, self.remedy, self.where)

    def __reduce__(self) -> tuple[object, ...]:
        # Keyword-only parameters: pickling between worker processes needs help.
        return (_rebuild, (type(self), self.code, self.what, self.remedy, self.where))


class UsageError(PacktoolError):
    """The command line (or configuration) asks for something that makes no sense."""

    exit_code = 2


class DataError(PacktoolError):
    """Input is missing, damaged, or not what it claims to be."""


def _rebuild(kind: type[PacktoolError], code: str, what: str, remedy: str, where: str | None) -> PacktoolError:
    return kind(code, what, remedy=remedy, where=where)


def message(what: str, remedy: str, where: str | None) -> str:
    """Join the parts of an error or warning as people read them.

    >>> message("no such file", "check the path", "a.jsonl")
    'a.jsonl: no such file. Check the path.'
    """
    place = f"{where}: " if where else ""
    stop = "" if remedy.endswith("?") else "."
    return visible(f"{place}{what}. {remedy[:1].upper()}{remedy[1:]}{stop}")


def visible(text: str) -> str:
    """Escape control characters, so that the contents of a file can't command a terminal.

    >>> print(visible("a\\x1b[2Jb\\u202ec\\n"))
    a\\x1b[2Jb\\u202ec\\n
    """
    return _HIDDEN.sub(lambda match: match[0].encode("unicode_escape").decode(), text)
