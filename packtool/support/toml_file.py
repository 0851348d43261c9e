"""Read a TOML file, and know the line of every value in it, which `tomllib` does not say.

`tomllib` has limits of its own for nesting and digits, which it reports without a line; options refuse other values.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from packtool.errors import DataError, UsageError
from packtool.support.sizes import show_bytes

Key: TypeAlias = "str | int"
"""A name in a table, or a number in a list."""
_MOST_BYTES = 1 << 24  # the largest file that is read: what is larger was named by mistake
_TOKEN = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}'  # a string of several lines, which may end with quotes of its own
    r"|'''.*?'{3,5}"
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|'[^'\n]*'"
    r"|#[^\n]*"
    r"|[\[\]{}\n]",
    re.DOTALL,
)
"""What tells where a statement ends: strings and comments, in which brackets mean nothing; brackets; ends of lines."""


@dataclass(frozen=True)
class TomlFile:
    """The contents of a file."""

    path: Path  # path of the file; `-` is standard input
    values: dict[str, Any]  # the top-level table
    lines: dict[tuple[Key, ...], int]  # lines of tables and values, by the keys that lead to them

    def line(self, *keys: Key) -> int:
        """Return the line of a value, or of the nearest table around it."""
        for size in range(len(keys), 0, -1):
            line = self.lines.get(keys[:size])
            if line is not None:
                return line
        return 1

    def place(self, *keys: Key) -> str:
        """Return `file:line` of a value, or of the nearest table around it."""
        return f"{self.path}:{self.line(*keys)}"


def read_toml(path: Path | str) -> TomlFile:
    """Read a file.

    Raises:
        DataError: it can't be read.
        UsageError: it is not TOML, or beyond the limits of `tomllib`; with the line.
    """
    path = Path(path)
    text = _text(path)
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _syntax_error(path, text, error) from None
    except (RecursionError, ValueError):
        values = {}  # a statement is to blame, which is parsed by itself below
    return TomlFile(path, values, _lines(path, _statements(text)))


def _text(path: Path) -> str:
    try:
        if path == Path("-"):
            raw = sys.stdin.buffer.read(_MOST_BYTES + 1)
        else:
            with path.open("rb") as file:
                raw = file.read(_MOST_BYTES + 1)
        if len(raw) > _MOST_BYTES:
            raise _bad_file(str(path), f"larger than {show_bytes(_MOST_BYTES)}")
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        remedy = "save the file as UTF-8"
        raise UsageError("bad-config", "not UTF-8 text", remedy=remedy, where=f"{path}:{line}") from None
    except FileNotFoundError:
        raise DataError("missing-input", "no such file", remedy="check the path", where=str(path)) from None


def _syntax_error(path: Path, text: str, error: tomllib.TOMLDecodeError) -> UsageError:
    what, _, place = str(error).partition(" (at ")
    match = re.match(r"line (\d+)", place)
    line = int(match[1]) if match else len(text.splitlines())
    what = what[:1].lower() + what[1:]
    remedy = "write values as in TOML: text in quotes, lists in brackets, true or false"
    return UsageError("bad-config", f"not TOML: {what}", remedy=remedy, where=f"{path}:{line}")


def _bad_file(where: str, what: str) -> UsageError:
    remedy = "write values as the documentation has them"
    return UsageError("bad-config", what, remedy=remedy, where=where)


def _lines(path: Path, statements: Iterable[tuple[int, str]]) -> dict[tuple[Key, ...], int]:
    """Return the lines of a valid file's tables and values, by the keys that lead to them.

    >>> _lines(Path("a.toml"), _statements("[a.b]\\nx = 1\\n[[c]]\\ny = {z = 2}\\n[[c]]\\n"))
    {('a',): 1, ('a', 'b'): 1, ('a', 'b', 'x'): 2, ('c',): 3, ('c', 0): 3, ('c', 0, 'y'): 4, ('c', 0, 'y', 'z'): 4, \
('c', 1): 5}
    """
    lines: dict[tuple[Key, ...], int] = {}
    counted: dict[tuple[Key, ...], int] = {}
    table: tuple[Key, ...] = ()
    for line, statement in statements:
        try:
            given = tomllib.loads(statement)
            below = list(_keys(given))
        except RecursionError:
            raise _bad_file(f"{path}:{line}", "nested too deeply") from None
        except ValueError:  # Python's own limit on the digits of an integer
            raise _bad_file(f"{path}:{line}", "a number has too many digits") from None
        if given and statement.lstrip().startswith("["):
            table = _header(given, counted)
            found = [table[:size] for size in range(1, len(table) + 1)]
        else:
            found = [(*table, *keys) for keys in below]
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
    """Yield the keys that lead to each item in a table or a list, at any depth; none for other values."""
    items: Iterable[tuple[Key, Any]] = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    for key, inside in items:
        yield (key,)
        for deeper in _keys(inside):
            yield (key, *deeper)


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """Yield each statement of a valid file, and its first line: a header, or a key with its value.

    A statement ends with its line, unless a bracket or a string is still open there.
    """
    first, start, line, depth = 1, 0, 1, 0
    for token in _TOKEN.finditer(text):
        found = token[0]
        line += found.count("\n")
        if found in ("[", "{"):
            depth += 1
        elif found in ("]", "}"):
            depth -= 1
        elif found == "\n" and depth <= 0:
            yield first, text[start : token.end()]
            first, start, depth = line, token.end(), 0
    yield first, text[start:]
