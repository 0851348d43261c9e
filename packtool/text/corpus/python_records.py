"""Copy records from a Python program to JSON Lines, to be read like any other file."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from packtool.errors import UsageError
from packtool.places.url import is_remote, require_no_secret
from packtool.text.conversations.contract import is_something
from packtool.text.corpus.classify import classify
from packtool.text.corpus.python_tables import PythonTable, plain
from packtool.text.corpus.records import CorpusFile, Fields
from packtool.text.faults import Fault
from packtool.text.paths import top_of

NAME = "records"
"""The name of these records in the manifest and in messages."""
_ROWS = 1000
"""Rows of a dataset that are read together."""


def copy_records(records: Iterable[Any], directory: Path, fields: Fields) -> CorpusFile:
    """Copy records, one after another, to a file of JSON Lines with the fields that are read.

    Args:
        records: texts, mappings with the fields, or a table; an `IterableDataset` of Hugging Face, too.
        directory: for the file.

    Raises:
        UsageError: they are not records; naming the first that is wrong.
    """
    if isinstance(records, Mapping):
        splits = ", ".join(map(str, records)) or "nothing"
        raise _refused(f"a mapping, of {splits}, is not a sequence of records", "give one of its values")
    target = directory / "stdin"  # they take its place
    if isinstance(records, PythonTable):
        records.write(target, _columns(records.names, fields))
        return msgspec.structs.replace(classify(NAME, str(target), "arrow"), copied=True)
    names = _names(fields)
    told: dict[tuple[Any, ...], list[str]] = {}  # by the names of a record's fields, which are often the same
    with target.open("w", encoding="ascii", newline="\n") as out:
        for number, record in enumerate(_narrowed(records, fields), 1):
            given = _record(record, number, fields.text)
            kept = {name: given[name] for name in names if name in given}
            if fields.ids and isinstance(given.get(fields.text), bytes):
                what = f"record {number} has bytes in {fields.text!r}, not a list of token ids"
                raise _refused(what, "give numbers, such as numpy.frombuffer(ids, numpy.uint16)")
            of = tuple(given)
            if of not in told:
                told[of] = fields.told_by(map(str, of), known=True)
            for name in told[of]:
                if is_something(given.get(name)):
                    kept[name] = True
            # Where nothing is what was asked for, the names alone: the reader then says what there is.
            out.write(json.dumps(kept or dict.fromkeys(map(str, given)), default=plain) + "\n")
    return msgspec.structs.replace(classify(NAME, str(target), "jsonl"), copied=True)


def _names(fields: Fields) -> list[str]:
    """List the fields to read of a record; of a path, the field in which it begins, too."""
    names: dict[str, None] = {}
    for path in (*fields.document, *fields.columns):
        names |= {path: None, top_of(path): None}
    return list(names)


def _columns(there: Sequence[str], fields: Fields) -> list[str]:
    """List the columns to read of these."""
    names = _names(fields)
    return [name for name in there if name in names] + fields.told_by(there)


def _narrowed(records: Any, fields: Fields) -> Iterable[Any]:
    """Select the columns of a dataset that are read, so that images and the like are not decoded for nothing."""
    known = getattr(records, "column_names", None)
    if isinstance(known, list) and hasattr(records, "select_columns"):
        wanted = _columns(known, fields)
        if wanted:
            return _without_nulls(records.select_columns(wanted), fields)
    return _without_nulls(records, fields)


def _without_nulls(records: Any, fields: Fields) -> Iterator[Any]:
    """Yield records; records of a dataset come as a file of JSON has them, without the nulls that its table adds.

    Of what only tells by being there, such as images, that is all that comes.
    """
    if getattr(records, "features", None) is None or not hasattr(records, "with_format"):
        yield from records
        return
    from packtool.text.corpus.rows import records_of
    from packtool.text.corpus.table_columns import something_in

    try:
        for table in records.with_format("arrow").iter(batch_size=_ROWS):
            told = {}
            for name in fields.told_by(table.column_names):
                told[name] = something_in(table.column(name))
            for place, record in enumerate(records_of(table.drop_columns(list(told)))):
                for name, there in told.items():
                    if there[place]:
                        record[name] = True
                yield record
    except Fault as error:
        raise _refused(error.what, error.remedy) from None


def _record(record: Any, number: int, text: str) -> Mapping[str, Any]:
    if isinstance(record, Mapping):
        return record
    if isinstance(record, os.PathLike):
        raise _refused(f"record {number} is a path", "give paths as a list")
    if not isinstance(record, str):
        what = f"record {number} is {type(record).__name__}, neither a text nor a mapping"
        raise _refused(what, f"yield texts, or mappings such as {{{text!r}: ...}}")
    if number == 1 and (is_remote(record) or (len(record) < 1000 and "\n" not in record and Path(record).exists())):
        require_no_secret(record)
        raise _refused(f"the first text, {record!r}, names a file", "give paths as a list, or texts as {'text': ...}")
    return {text: record}


def _refused(what: str, remedy: str) -> UsageError:
    return UsageError("bad-records", what, remedy=remedy, where="inputs")
