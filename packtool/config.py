"""Options from a TOML file: one table for each stage, under the options' own names, each value with its line.

    [pack]                        [[pack]] as often as you like, for `packtool run`
    strategy = "bfd"              --strategy bfd
    sequence-length = 2048        --sequence-length 2048
    shuffle = false               --no-shuffle
    buckets = [2048, 4096]        --buckets 2048,4096

What an option takes is read from the signature of the stage's public function, so the two cannot drift apart.
"""

from __future__ import annotations

import difflib
import inspect
import re
import sys
import tomllib
import types
import typing
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

from packtool.errors import DataError, PacktoolError, UsageError

STAGES = ("tokenize", "pack", "shuffle", "stats")
"""The tables a file may have, in the order in which `packtool run` goes through them."""
MANNERS = frozenset({"overwrite", "resume", "dry_run", "quiet", "json", "verbose", "config"})
"""Options about one call rather than about the work: they belong on the command line only."""
INPUT = "input"
"""Key for what a command takes without an option name: corpus files, stores, a dataset."""


@dataclass(frozen=True)
class Table:
    """One table of a file.

    Attributes:
        file: the file.
        stage: one of `STAGES`.
        line: where the table begins.
        values: option names as the functions have them (`sequence_length`) to values.
        lines: the same names to their lines.
    """

    file: Path
    stage: str
    line: int
    values: dict[str, Any] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)

    def place(self, name: str | None = None) -> str:
        """`file:line` of an option, or of the table."""
        return f"{self.file}:{self.lines.get(name or '', self.line)}"

    def locate(self, error: PacktoolError) -> PacktoolError:
        """The error, pointing into this file if it is about an option that this table gives."""
        name = (error.where or "").removeprefix("--").replace("-", "_")
        if name not in self.lines or not isinstance(error, UsageError):
            return error
        return UsageError(error.code, f"{spelling(name)}: {error.what}", remedy=error.remedy, where=self.place(name))


@dataclass(frozen=True)
class Option:
    """One option of a stage: what it is called and the kinds of value it takes."""

    name: str
    kinds: frozenset[type]
    items: frozenset[type] = frozenset()

    def describe(self) -> str:
        """The kinds in words."""
        words = [_WORDS[kind] for kind in _WORDS if kind in self.kinds]
        words += [f"a list of {_PLURALS[kind]}" for kind in _PLURALS if kind in self.items]
        return " or ".join(words)


_WORDS = {bool: "true or false", int: "a whole number", float: "a number", str: "a string"}
_PLURALS = {int: "whole numbers", float: "numbers", str: "strings"}


def spelling(name: str) -> str:
    """An option's name as a file has it.

    >>> spelling("atom_size")
    'atom-size'
    """
    return name.replace("_", "-")


def read(path: Path | str, function_of: Callable[[str], Callable[..., Any]], only: str | None = None) -> list[Table]:
    """The tables of a file, checked.

    Args:
        path: a TOML file; `-` is standard input.
        function_of: from a stage to its public function, whose signature says which options there are.
        only: read the tables of this stage alone; of the others only the names are checked.

    Raises:
        DataError: the file can't be read.
        UsageError: it is no TOML, has an unknown table or key, or a value of the wrong type; with its line.
    """
    path = Path(path)
    text = _text(path)
    try:
        found = tomllib.loads(text, parse_float=Decimal)
    except tomllib.TOMLDecodeError as error:
        raise _syntax_error(path, text, error) from None
    places = _Places(text)
    tables = []
    for name, value in found.items():
        here = f"{path}:{places.of(name)}"
        if name not in STAGES:
            raise UsageError("unknown-key", f"there is no table {name!r}", remedy=_suggest(name, STAGES), where=here)
        entries = value if isinstance(value, list) else [value]
        if not all(isinstance(entry, dict) for entry in entries):
            raise UsageError("bad-type", f"{name} is not a table", remedy=f"write [{name}]", where=here)
        if only not in (None, name):
            continue
        schema = options_of(function_of(name))
        tables += [_table(path, name, n, entry, schema, places) for n, entry in enumerate(entries)]
    return sorted(tables, key=lambda table: STAGES.index(table.stage))


def options_of(function: Callable[..., Any]) -> dict[str, Option]:
    """The options of a command, from the signature of its function; its first parameter is called `input`.

    >>> def cut(path: Path | str, *, size: int | None, names: Sequence[str], quiet: bool = True) -> None: ...
    >>> [(option.name, option.describe()) for option in options_of(cut).values()]
    [('input', 'a string'), ('size', 'a whole number'), ('names', 'a list of strings')]
    """
    hints = typing.get_type_hints(function)
    options = {}
    for position, name in enumerate(inspect.signature(function).parameters):
        if name not in MANNERS:
            name_here = INPUT if position == 0 else name
            kinds, items = _kinds(hints[name])
            options[name_here] = Option(name_here, frozenset(kinds), frozenset(items))
    return options


def _kinds(hint: Any) -> tuple[set[type], set[type]]:
    """The plain types that a type hint allows, and those of the items where it allows a list."""
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        parts = [_kinds(part) for part in typing.get_args(hint)]
        return set().union(*(kinds for kinds, _ in parts)), set().union(*(items for _, items in parts))
    if origin is typing.Literal:
        return {type(value) for value in typing.get_args(hint)}, set()
    if origin is not None:
        return set(), _kinds(typing.get_args(hint)[0])[0]
    plain = {Path: str, Fraction: float}
    kind = plain.get(hint, hint)
    return ({kind} if kind in _WORDS else set()), set()


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
    found = re.match(r"line (\d+)", place)
    line = int(found[1]) if found else len(text.splitlines())
    what = what[:1].lower() + what[1:]
    remedy = "write values as in TOML: text in quotes, lists in brackets, true or false"
    return UsageError("bad-config", f"not TOML: {what}", remedy=remedy, where=f"{path}:{line}")


def _table(
    path: Path, stage: str, number: int, entries: dict[str, Any], schema: dict[str, Option], places: _Places
) -> Table:
    table = Table(path, stage, places.of(stage, number))
    for key, value in entries.items():
        name = key.replace("-", "_")
        where = f"{path}:{places.of(stage, number, key)}"
        if name in MANNERS:
            remedy = f"leave it out and give --{spelling(name)} on the command line"
            raise UsageError("unknown-key", f"{key} is not for files", remedy=remedy, where=where)
        if name not in schema:
            remedy = _suggest(spelling(name), [spelling(known) for known in schema])
            raise UsageError("unknown-key", f"{stage} has no option {key!r}", remedy=remedy, where=where)
        if name in table.values:
            raise UsageError("duplicate-key", f"{key} is given twice", remedy="keep one of them", where=where)
        table.values[name] = _value(value, schema[name], where)
        table.lines[name] = places.of(stage, number, key)
    return table


def _value(value: Any, option: Option, where: str) -> Any:
    """The value as the function takes it; exact decimals stay exact, as strings."""
    if isinstance(value, list) and option.items and all(_fits(item, option.items) for item in value):
        return [str(item) if isinstance(item, Decimal) else item for item in value]
    if not _fits(value, option.kinds) and not (_fits(value, option.items) and not isinstance(value, list)):
        what = f"{spelling(option.name)} can't be {_shown(value)}"
        raise UsageError("bad-type", what, remedy=f"give {option.describe()}", where=where)
    if isinstance(value, Decimal):
        value = str(value) if str in option.kinds else float(value)
    return value if _fits(value, option.kinds) else [value]


def _fits(value: Any, kinds: frozenset[type]) -> bool:
    if isinstance(value, bool):
        return bool in kinds
    if isinstance(value, int):
        return int in kinds or float in kinds
    if isinstance(value, Decimal):
        return float in kinds
    return type(value) in kinds


def _shown(value: Any) -> str:
    if isinstance(value, bool | Decimal):
        return str(value).lower()
    return repr(value)


def _suggest(name: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    return f"did you mean {close[0]}?" if close else f"there are {', '.join(known)}"


_QUOTED = r'"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\''
_HEADER = re.compile(rf"\[\[?(?:{_QUOTED}|[^\]\"'])*\]\]?")
_KEY = re.compile(rf"((?:{_QUOTED}|[^=\"'])*)=")
_PIECE = re.compile(
    rf"""\"\"\"(?:\\[\s\S]|[^\\])*?\"\"\"(?!\")|'''[\s\S]*?'''(?!')|{_QUOTED}  # strings, of many lines or one
    |\#[^\n]*|[\[\]{{}}]|\n|[^"'\#\[\]{{}}\n]+  # comments, brackets, ends of lines, anything else""",
    re.VERBOSE,
)
_BLANK = re.compile(r"(?:\s|#[^\n]*(?:\n|$))*")


class _Places:
    """The lines of tables and keys in a file that is known to be valid TOML, as `tomllib` does not tell them."""

    def __init__(self, text: str) -> None:
        self._lines: dict[tuple[str | int, ...], int] = {}
        numbers: dict[str, int] = {}
        prefix: tuple[str | int, ...] = ()
        for line, header, key in _statements(text):
            if header is not None:
                (name, content), *_ = tomllib.loads(header).items()
                numbers[name] = numbers.get(name, -1) + 1 if isinstance(content, list) else 0
                prefix = (name, numbers[name])
                self._lines.setdefault((name,), line)
                self._lines.setdefault(prefix, line)
            elif key is not None:
                self._lines.setdefault((*prefix, key), line)

    def of(self, *place: str | int) -> int:
        """Line of a table (name, number) or key (name, number, key); of what is around it if it has none itself."""
        while place and place not in self._lines:
            place = place[:-1]
        return self._lines.get(place, 1)


def _statements(text: str) -> Iterator[tuple[int, str | None, str | None]]:
    """(line, header or None, first part of the key or None) of each statement."""
    position = 0
    while True:
        blank = _BLANK.match(text, position)
        position = blank.end() if blank else position
        if position >= len(text):
            return
        line = text.count("\n", 0, position) + 1
        header = _HEADER.match(text, position)
        if header:
            yield line, header[0], None
            position = _end_of_value(text, header.end())
        else:
            key = _KEY.match(text, position)
            assert key is not None, "valid TOML has a key here"
            yield line, None, next(iter(tomllib.loads(f"{key[1]}=0")))
            position = _end_of_value(text, key.end())


def _end_of_value(text: str, position: int) -> int:
    depth = 0
    while position < len(text):
        piece = _PIECE.match(text, position)
        assert piece is not None, "every character belongs to a piece"
        position = piece.end()
        depth += piece[0] in "[{"
        depth -= piece[0] in "]}"
        if piece[0] == "\n" and depth == 0:
            break
    return position
