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
from packtool.options.declare import Declared, declared, flag
from packtool.options.run import STAGES
from packtool.options.shared import Terminal

INPUT = "input"
"""Key of positional arguments: corpus files, stores, a dataset."""
_ENDS = ("]", "}", '"""', "'''")
"""One of these is in the last line of a value of several lines."""


@dataclass(frozen=True)
class Table:
    """One table of a file.

    Attributes:
        file: the file.
        stage: the command it is for.
        line: where the table begins.
        values: by option names as the functions have them (`sequence_length`).
        lines: of the values, by the same names.
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


def read(path: Path | str, only: str | None = None) -> list[Table]:
    """Read and check the tables of a file, in the order of the stages.

    Args:
        path: a TOML file; `-` is standard input.
        only: read the tables of this stage alone; of the others only the names are checked.

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
    lines = _lines(text)
    tables = []
    for name, value in values.items():
        where = f"{path}:{lines.get((name,), 1)}"
        if name not in STAGES:
            remedy = suggest(name, list(STAGES))
            raise UsageError("unknown-key", f"there is no table {name!r}", remedy=remedy, where=where)
        entries = value if isinstance(value, list) else [value]
        if not all(isinstance(entry, dict) for entry in entries):
            raise UsageError("bad-type", f"{name} is not a table", remedy=f"write [{name}]", where=where)
        if only in (None, name):
            tables += [_table(path, name, number, entry, lines) for number, entry in enumerate(entries)]
    return sorted(tables, key=lambda table: list(STAGES).index(table.stage))


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


def _table(
    path: Path, stage: str, number: int, entries: dict[str, Any], lines: Mapping[tuple[str | int, ...], int]
) -> Table:
    """Check the entries of a table, the one of this number of its stage."""
    table = Table(path, stage, lines.get((stage, number), lines[stage,]))
    options = declared(STAGES[stage])
    known = {each.key: each for each in options.values() if each.option.in_file}
    elsewhere = {*options, *declared(Terminal)} - known.keys()
    for key, value in entries.items():
        name = key.replace("-", "_")
        line = lines.get((stage, number, key), table.line)
        where = f"{path}:{line}"
        if name in elsewhere:
            remedy = f"leave it out and give {flag(name)} on the command line"
            raise UsageError("unknown-key", f"{key} is not for files", remedy=remedy, where=where)
        if name not in known:
            remedy = suggest(spelling(name), [spelling(each) for each in known])
            raise UsageError("unknown-key", f"{stage} has no option {key!r}", remedy=remedy, where=where)
        if name in table.values:
            raise UsageError("duplicate-key", f"{key} is given twice", remedy="keep one of them", where=where)
        table.values[name] = _value(value, known[name], where)
        table.lines[name] = line
    return table


def _value(value: Any, option: Declared, where: str) -> Any:
    """Convert a value to the type that the function expects."""
    kind = option.option.kind
    try:
        return kind.parse(msgspec.convert(value, kind.in_file))
    except (msgspec.ValidationError, ValueError, UsageError):
        shown = str(value).lower() if isinstance(value, bool) else repr(value)
        what = f"{spelling(option.key)} can't be {shown}"
        raise UsageError("bad-type", what, remedy=f"give {kind.words}", where=where) from None


def _lines(text: str) -> dict[tuple[str | int, ...], int]:
    """Return the lines of a valid file's tables (name, number) and keys (name, number, key), which `tomllib` omits."""
    lines: dict[tuple[str | int, ...], int] = {}
    numbers: dict[str, int] = {}
    table: tuple[str | int, ...] = ()
    for line, is_header, (name, content) in _statements(text):
        if is_header:
            numbers[name] = numbers.get(name, -1) + 1 if isinstance(content, list) else 0
            table = (name, numbers[name])
            lines.setdefault((name,), line)
            lines.setdefault(table, line)
        else:
            lines.setdefault((*table, name), line)
    return lines


def _statements(text: str) -> Iterator[tuple[int, bool, tuple[str, Any]]]:
    """Yield each statement's line, whether it is a header, and what it gives: a name with its content."""
    statement, first = "", 1
    for number, line in enumerate(text.split("\n"), 1):
        statement += f"{line}\n"
        if number > first and not any(end in line for end in _ENDS):
            continue  # parsing what can't be whole yet would take the square of its lines
        try:
            parsed = tomllib.loads(statement)
        except tomllib.TOMLDecodeError:
            continue  # it goes on in the next line
        for given in parsed.items():
            yield first, statement.lstrip().startswith("["), given
        statement, first = "", number + 1
