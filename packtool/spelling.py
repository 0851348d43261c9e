"""How an option is written: on the command line, in Python, in a configuration file.

Messages name options as the command line does, and give a value behind an equals sign: `--sequence-length=2048`,
`--overwrite=True`, `--no-shuffle`. Whoever shows a message to its reader writes these as the reader would. What stands
between backticks is a command for a shell, and stays.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container

_REFERENCE = re.compile(
    r"""`[^`]*`|(?<![\w/.:=-])--(?P<name>[a-z][a-z-]*[a-z])(?![\w-]|[./]\w)"""
    r"""(?:=(?P<value>"[^"]*"|'[^']*'|[^\s;()"']*[^\s,;():"'.?]))?"""
)
_BESIDE = re.compile(r"(--[a-z-]+=\S*[^\s,;]) (?=--)")
"""An option before another one, with nothing between: in Python, a comma."""
_AS_IT_IS = re.compile(r"""-?\d+(\.\d+)?|["'].*|[A-Z_,]+""")
"""Values without quotes in Python and in files: numbers, what is quoted already, and placeholders."""


def flag(name: str) -> str:
    """Return an option's name as the command line has it.

    >>> flag("atom_size")
    '--atom-size'
    """
    return "--" + name.replace("_", "-")


def file_key(name: str) -> str:
    """Return an option's name as a configuration file has it.

    >>> file_key("atom_size")
    'atom-size'
    """
    return name.replace("_", "-")


def as_typed(message: str) -> str:
    """Write the options of a message as they are typed.

    >>> as_typed("give --on-error=skip, or --overwrite=True")
    'give --on-error skip, or --overwrite'
    """

    def typed(name: str, value: str | None) -> str:
        if value in (None, "True"):
            return flag(name)
        return f"{flag(name)} {value}"

    return _rewritten(message, typed)


def in_python(message: str) -> str:
    """Write the options of a message as keywords of a call.

    >>> in_python("give --on-error=skip, --sequence-length=2048 or --no-shuffle; --seed is no option of `ls --all`")
    'give on_error="skip", sequence_length=2048 or shuffle=False; seed is no option of `ls --all`'
    """

    def keyword(name: str, value: str | None) -> str:
        if name.startswith("no-") and value is None:
            name, value = name.removeprefix("no-"), "False"
        written = name.replace("-", "_")
        if value is None:
            return written
        if value in ("True", "False"):
            return f"{written}={value}"
        return f"{written}={_quoted(value)}"

    return _rewritten(_BESIDE.sub(r"\1, ", message), keyword)


def in_file(message: str, keys: Container[str]) -> str:
    """Write those options of a message that a table of a configuration file may hold as keys of the table.

    Args:
        keys: names of these options, as Python has them.

    >>> in_file("give --on-error=skip, --no-shuffle or --overwrite=True", ["on_error", "shuffle"])
    'give on-error = "skip", shuffle = false or --overwrite=True'
    """

    def entry(name: str, value: str | None) -> str:
        given = flag(name) if value is None else f"{flag(name)}={value}"
        if name.startswith("no-") and value is None:
            name, value = name.removeprefix("no-"), "False"
        if name.replace("-", "_") not in keys:
            return given
        if value is None:
            return name
        if value in ("True", "False"):
            return f"{name} = {value.lower()}"
        return f"{name} = {_quoted(value)}"

    return _rewritten(message, entry)


def _rewritten(message: str, write: Callable[[str, str | None], str]) -> str:
    """Replace each option that a message names."""

    def replaced(match: re.Match[str]) -> str:
        if match["name"] is None:
            return match[0]
        return write(match["name"], match["value"])

    return _REFERENCE.sub(replaced, message)


def _quoted(value: str) -> str:
    """Write a value as Python and TOML do."""
    if _AS_IT_IS.fullmatch(value):
        return value
    return f'"{value}"'
