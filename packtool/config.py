"""Read options from a TOML file: one table for each stage, under the options' own names, each value with its line.

    [pack]                        [[pack]] as often as you like, for `packtool run`
    strategy = "bfd"              --strategy bfd
    sequence-length = 2048        --sequence-length 2048
    shuffle = false               --no-shuffle
    buckets = [2048, 4096]        --buckets 2048,4096

What a table takes is what `packtool.options` declares for its command.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from packtool.errors import PacktoolError, UsageError
from packtool.options.check import suggest
from packtool.options.commands import STAGES, arguments_of
from packtool.options.declare import Declared, declared
from packtool.options.shared import Terminal
from packtool.options.values import read_value
from packtool.spelling import file_key, flag, in_file
from packtool.support.toml_file import TomlFile, read_toml

INPUT = "input"
"""Key of positional arguments: corpus files, stores, a dataset."""


@dataclass(frozen=True)
class StageTable:
    """One table of a file."""

    file: Path  # the file
    stage: str  # the command that it is for
    line: int  # line where the table begins
    values: dict[str, Any] = field(default_factory=dict)  # values by Python's names of the options (`sequence_length`)
    lines: dict[str, int] = field(default_factory=dict)  # lines of the values, by the same names

    def place(self, name: str | None = None) -> str:
        """Return `file:line` of an option, or of the table."""
        return f"{self.file}:{self.lines.get(name or '', self.line)}"

    def locate(self, error: PacktoolError) -> PacktoolError:
        """Point an error into this file if it is about an option that this table gives, or lacks."""
        name = (error.where or "").removeprefix("--").replace("-", "_")
        keys = _keys(self.stage)
        for key, declaration in keys.items():
            if declaration.name == name:  # of an argument, which files call `input`
                name = key
        lacks = name in keys and error.code == "missing-option"
        if not isinstance(error, UsageError) or (name not in self.lines and not lacks):
            return error
        what = f"{file_key(name)}: {in_file(error.what, keys)}"
        return UsageError(error.code, what, remedy=in_file(error.remedy, keys), where=self.place(name))


def _keys(stage: str) -> dict[str, Declared]:
    """Return the options that a table may hold, by their keys with underscores."""
    options = declared(arguments_of(stage)).values()
    return {declaration.key: declaration for declaration in options if declaration.option.in_file}


def read(path: Path | str, only: str | None = None) -> list[StageTable]:
    """Read and check the tables of a file, in the order of the stages.

    Args:
        path: a TOML file; `-` is standard input.
        only: read the tables of this stage alone; of the others only the names are checked.

    Raises:
        DataError: the file can't be read.
        UsageError: it is not TOML, has no table, an unknown table or key, or a value of the wrong type; with its line.
    """
    file = read_toml(path)
    if not file.values:
        remedy = "write [tokenize], [pack], [shuffle], [materialize], [export] or [stats]"
        raise UsageError("nothing-to-do", "the file has no table", remedy=remedy, where=str(file.path))
    tables = []
    for name, value in file.values.items():
        where = file.place(name)
        if name not in STAGES:
            remedy = suggest(name, STAGES)
            raise UsageError("unknown-key", f"there is no table {name!r}", remedy=remedy, where=where)
        several = isinstance(value, list)
        entries = value if several else [value]
        if not all(isinstance(entry, dict) for entry in entries):
            raise UsageError("bad-type", f"{name} is not a table", remedy=f"write [{name}]", where=where)
        if only in (None, name):
            for number, entry in enumerate(entries):
                tables.append(_table(file, name, entry, number if several else None))
    return sorted(tables, key=lambda table: STAGES.index(table.stage))


def _table(file: TomlFile, stage: str, entries: dict[str, Any], number: int | None) -> StageTable:
    """Check the entries of a table: the only one of its stage, or the one of this number."""
    keys = (stage,) if number is None else (stage, number)
    table = StageTable(file.path, stage, file.line(*keys))
    known = _keys(stage)
    elsewhere = {*declared(arguments_of(stage)), *declared(Terminal)} - known.keys()
    for key, value in entries.items():
        name = key.replace("-", "_")
        line, where = file.line(*keys, key), file.place(*keys, key)
        if name in elsewhere:
            remedy = f"leave it out and give {flag(name)} on the command line"
            raise UsageError("unknown-key", f"{key} is not for files", remedy=remedy, where=where)
        if name not in known:
            remedy = suggest(file_key(name), list(map(file_key, known)))
            raise UsageError("unknown-key", f"{stage} has no option {key!r}", remedy=remedy, where=where)
        if name in table.values:
            raise UsageError("duplicate-key", f"{key} is given twice", remedy="keep one of them", where=where)
        table.values[name] = read_value(known[name].option.kind, file_key(name), value, where)
        table.lines[name] = line
    return table
