"""Errors a user can cause: what happened, where, and what to do about it.

Every error carries a stable code (listed in docs/codes.md) and maps to an exit status:
2 for usage, 1 for data or run time. Anything else that escapes is a bug and keeps its traceback.
"""

from __future__ import annotations

import re
from functools import partial

from packtool.spelling import as_typed, in_python

_HIDDEN = re.compile("[\\x00-\\x1f\\x7f-\\x9f\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069\\ud800-\\udfff]")
"""Control characters, line separators, changes of direction, and halves of surrogate pairs."""


_SECRET = re.compile(r"([a-z][a-z0-9+.-]*:/+)[^/\s]*:[^/\s]*@", re.IGNORECASE)
"""Credentials in a URL: whatever repeats a value may repeat them."""


class Explained(Exception):  # noqa: N818 - warnings are explained, too
    """A message to the user: what is wrong, where, and what to do about it.

    Args:
        code: stable name, such as ``unknown-strategy``; documented, never reused.
        what: what is wrong, in a sentence without a final stop.
        remedy: what to do about it, in a sentence without a final stop.
        where: the option, file or ``file:line`` it is about.

    The parts name options as `packtool.spelling` says, ``--seed=0``. The text of an error has them as keywords
    of Python, and `typed` as the command line.

    >>> error = Explained("bad-seed", "-1 is negative", remedy="give --seed=0 or more", where="--seed")
    >>> print(error)
    seed: -1 is negative. Give seed=0 or more.
    >>> print(error.typed())
    --seed: -1 is negative. Give --seed 0 or more.
    """

    def __init__(self, code: str, what: str, *, remedy: str, where: str | None = None) -> None:
        self.code = code
        self.what = without_secrets(what)
        self.remedy = without_secrets(remedy)
        self.where = where and without_secrets(where)
        super().__init__(code, self.what, self.remedy, self.where)

    def __str__(self) -> str:
        return in_python(self.text())

    def typed(self) -> str:
        """Return the text for somebody at the command line."""
        return as_typed(self.text())

    def text(self) -> str:
        """Return the text for another message.

        It isn't called `message`: of an error with an attribute of that name PyTorch makes another in a worker.
        """
        place = f"{self.where}: " if self.where else ""
        stop = "" if self.remedy.endswith("?") else "."
        return visible(f"{place}{self.what}. {self.remedy[:1].upper()}{self.remedy[1:]}{stop}")

    def __reduce__(self) -> tuple[object, ...]:
        # Keyword-only parameters: pickling between worker processes needs help.
        return partial(type(self), remedy=self.remedy, where=self.where), (self.code, self.what)


class PacktoolError(Explained):
    """One clear error."""

    exit_code = 1


class UsageError(PacktoolError):
    """The command line (or configuration) asks for something that makes no sense."""

    exit_code = 2


class DataError(PacktoolError):
    """Input is missing, damaged, or not what it claims to be."""


def without_secrets(text: str) -> str:
    """Return a text without the credentials of URLs in it.

    >>> without_secrets("https://ann:secret@host/x:3 is no place")
    'https://…@host/x:3 is no place'
    >>> without_secrets("https:/ann:secret@host/x.toml: no such file")  # as `pathlib` writes it
    'https:/…@host/x.toml: no such file'
    """
    return _SECRET.sub(r"\1…@", text)


def visible(text: str, *, keep: str = "", as_json: bool = False) -> str:
    """Escape control characters, so that the contents of a file can't command a terminal, nor turn its text around.

    Args:
        text: to show in a terminal.
        keep: control characters that stay as they are.
        as_json: the text is JSON, which has escapes of its own.

    >>> print(visible("a\\x1b[2Jb\\u202ec\\n"))
    a\\x1b[2Jb\\u202ec\\n
    """

    def escaped(match: re.Match[str]) -> str:
        found = match[0]
        if found in keep:
            return found
        return f"\\u{ord(found):04x}" if as_json else found.encode("unicode_escape").decode()

    return _HIDDEN.sub(escaped, text)
