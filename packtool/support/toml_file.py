"""Read a TOML file, and know the line of every value in it, which `tomllib` does not say."""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from packtool.errors import DataError, UsageError

Key: TypeAlias = "str | int"
"""A name in a table, or a number in a list."""
_ENDS = ("]", "}", '"""', "'''")
"""One of these is in the last line of a value of several lines."""


@dataclass(frozen=True)
class TomlFile:
    """The contents of a file.

    Attributes:
        path: of the file; `-` is standard input.
        values: the top-level table.
        lines: of tables and values, by the keys that lead to them.
    """

    path: Path
    values: dict[str, Any]
    lines: dict[tuple[Key, ...], int]

    def line(self, *keys: Key) -> int:
        """Return the line of a value, or of the nearest table around it."""
        known = (self.lines[keys[:size]] for size in range(len(keys), 0, -1) if keys[:size] in self.lines)
        return next(known, 1)

    def place(self, *keys: Key) -> str:
        """Return `file:line` of a value, or of the nearest table around it."""
        return f"{self.path}:{self.line(*keys)}"


def read_toml(path: Path | str) -> TomlFile:
    """Read a file.

    Raises:
        DataError: it can't be read.
        UsageError: it is not TOML; with the line.
    """
    path = Path(path)
    text = _text(path)
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _syntax_error(path, text, error) from None
    return TomlFile(path, values, _lines(text))


def _text(path: Path) -> str:
    try:
        raw = sys.stdin.buffer.read() if path == Path("-") else path.read_bytes()
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise UsageError(
            "bad-config", "not UTF-8 text", remedy="save the file as UTF-8", where=f"{path}:{line}"
        ) from None
    except FileNotFoundError:
        raise DataError("missing-input", "no such file", remedy="check the path", where=str(path)) from None


def _syntax_error(path: Path, text: str, error: tomllib.TOMLDecodeError) -> UsageError:
    what, _, place = str(error).partition(" (at ")
    match = re.match(r"line (\d+)", place)
    line = int(match[1]) if match else len(text.splitlines())
    what = what[:1].lower() + what[1:]
    remedy = "write values as in TOML: text in quotes, lists in brackets, true or false"
    return UsageError("bad-config", f"not TOML: {what}", remedy=remedy, where=f"{path}:{line}")


def _lines(text: str) -> dict[tuple[Key, ...], int]:
    """Return the lines of a valid file's tables and values, by the keys that lead to them.

    >>> _lines("[a.b]\\nx = 1\\n[[c]]\\ny = {z = 2}\\n[[c]]\\n")
    {('a',): 1, ('a', 'b'): 1, ('a', 'b', 'x'): 2, ('c',): 3, ('c', 0): 3, ('c', 0, 'y'): 4, ('c', 0, 'y', 'z'): 4, \
('c', 1): 5}
    """
    lines: dict[tuple[Key, ...], int] = {}
    counted: dict[tuple[Key, ...], int] = {}
    table: tuple[Key, ...] = ()
    for line, is_header, given in _statements(text):
        if is_header:
            table = _header(given, counted)
            found = [table[:size] for size in range(1, len(table) + 1)]
        else:
            found = [(*table, *keys) for keys in _keys(given)]
        for keys in found:
            lines.setdefault(keys, line)
    return lines


def _header(given: dict[str, Any], counted: dict[tuple[Key, ...], int]) -> tuple[Key, ...]:
    """Return the keys of the table that a header begins.

    Args:
        counted: number of the last table of each list of tables, which one more is added to.
    """
    keys: tuple[Key, ...] = ()
    while given:
        ((name, inside),) = given.items()
        keys += (name,)
        if isinstance(inside, list):
            counted[keys] = counted.get(keys, -1) + 1
            inside = inside[0]
        if keys in counted:
            keys += (counted[keys],)
        given = inside
    return keys


def _keys(value: Any) -> Iterator[tuple[Key, ...]]:
    """Yield the keys of all that lies in a value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inside in items:
        yield (key,)
        yield from ((key, *more) for more in _keys(inside))


def _statements(text: str) -> Iterator[tuple[int, bool, dict[str, Any]]]:
    """Yield each statement's line, whether it is a header, and what it gives."""
    statement, first = "", 1
    for number, line in enumerate(text.split("\n"), 1):
        statement += f"{line}\n"
        if number > first and not any(end in line for end in _ENDS):
            continue  # parsing what can't be whole yet would take the square of its lines
        try:
            parsed = tomllib.loads(statement)
        except tomllib.TOMLDecodeError:
            continue  # it goes on in the next line
        if parsed:
            yield first, statement.lstrip().startswith("["), parsed
        statement, first = "", number + 1
