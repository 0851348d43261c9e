"""Read options from a TOML file: one table for each stage, under the options' own names, each value with its line.

    [pack]                        [[pack]] as often as you like, for `packtool run`
    strategy = "bfd"              --strategy bfd
    sequence-length = 2048        --sequence-length 2048
    shuffle = false               --no-shuffle
    buckets = [2048, 4096]        --buckets 2048,4096

What a table takes is what `packtool.options` declares for its command.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from packtool.errors import DataError, PacktoolError, UsageError
from packtool.options.check import suggest
from packtool.options.declare import Declared, declared
from packtool.options.run import STAGES
from packtool.options.shared import Terminal

INPUT = "input"
"""Key for what a command takes without an option name: corpus files, stores, a dataset."""


@dataclass(frozen=True)
class Table:
    """One table of a file.

    Attributes:
        file: the file.
        stage: the command it is for.
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
        """Return `file:line` of an option, or of the table."""
        return f"{self.file}:{self.lines.get(name or '', self.line)}"

    def locate(self, error: PacktoolError) -> PacktoolError:
        """Point an error into this file if it is about an option that this table gives."""
        name = (error.where or "").removeprefix("--").replace("-", "_")
        if name not in self.lines or not isinstance(error, UsageError):
            return error
        return UsageError(error.code, f"{spelling(name)}: {error.what}", remedy=error.remedy, where=self.place(name))


def spelling(name: str) -> str:
    """Return an option's name as a file has it.

    >>> spelling("atom_size")
    'atom-size'
    """
    return name.replace("_", "-")


def read(path: Path | str, only: str | None = None, stages: Mapping[str, type] = STAGES) -> list[Table]:
    """Read and check the tables of a file.

    Args:
        path: a TOML file; `-` is standard input.
        only: read the tables of this stage alone; of the others only the names are checked.
        stages: what each table may hold, as `packtool.options` declares it.

    Raises:
        DataError: the file can't be read.
        UsageError: it is not TOML, has an unknown table or key, or a value of the wrong type; with its line.
    """
    path = Path(path)
    text = _text(path)
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _syntax_error(path, text, error) from None
    places = _Places(text)
    tables = []
    for name, value in values.items():
        here = f"{path}:{places.of(name)}"
        if name not in stages:
            raise UsageError(
                "unknown-key", f"there is no table {name!r}", remedy=suggest(name, list(stages)), where=here
            )
        entries = value if isinstance(value, list) else [value]
        if not all(isinstance(entry, dict) for entry in entries):
            raise UsageError("bad-type", f"{name} is not a table", remedy=f"write [{name}]", where=here)
        if only not in (None, name):
            continue
        arguments = stages[name]
        tables += [_table(path, name, n, entry, arguments, places) for n, entry in enumerate(entries)]
    return sorted(tables, key=lambda table: list(stages).index(table.stage))


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


def _table(path: Path, stage: str, number: int, entries: dict[str, Any], arguments: type, places: _Places) -> Table:
    table = Table(path, stage, places.of(stage, number))
    known = {each.key: each for each in declared(arguments).values() if each.option.in_file}
    elsewhere = {*declared(arguments), *declared(Terminal)} - known.keys()
    for key, value in entries.items():
        name = key.replace("-", "_")
        where = f"{path}:{places.of(stage, number, key)}"
        if name in elsewhere and name not in known:
            remedy = f"leave it out and give --{spelling(name)} on the command line"
            raise UsageError("unknown-key", f"{key} is not for files", remedy=remedy, where=where)
        if name not in known:
            remedy = suggest(spelling(name), [spelling(each) for each in known])
            raise UsageError("unknown-key", f"{stage} has no option {key!r}", remedy=remedy, where=where)
        if name in table.values:
            raise UsageError("duplicate-key", f"{key} is given twice", remedy="keep one of them", where=where)
        table.values[name] = _value(value, known[name], where)
        table.lines[name] = places.of(stage, number, key)
    return table


def _value(value: Any, option: Declared, where: str) -> Any:
    """Convert a value to the type that the function expects."""
    kind = option.option.kind
    try:
        return kind.parse(msgspec.convert(value, kind.in_file))
    except (msgspec.ValidationError, ValueError, UsageError):
        what = f"{spelling(option.key)} can't be {_shown(value)}"
        raise UsageError("bad-type", what, remedy=f"give {kind.words}", where=where) from None


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value)


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
    """The lines of tables and keys in a valid TOML file, which `tomllib` does not give."""

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
        """Return the line of a table (name, number) or key (name, number, key), or that of its surroundings."""
        while place and place not in self._lines:
            place = place[:-1]
        return self._lines.get(place, 1)


def _statements(text: str) -> Iterator[tuple[int, str | None, str | None]]:
    """Yield (line, header or None, first part of the key or None) of each statement."""
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
