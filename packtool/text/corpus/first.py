"""Get the first record of a corpus, which tells what all hold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import chain, islice
from typing import Any

from packtool.text.corpus.decompress import open_stream
from packtool.text.corpus.file_bytes import open_raw
from packtool.text.corpus.formats import FORMATS
from packtool.text.corpus.python_tables import PythonTable, is_table, plain
from packtool.text.corpus.records import CorpusFile, shown
from packtool.text.corpus.tables import row_of

_FILES = 10
"""Most files to look at, should the first of them hold no record."""


def first_of(files: Sequence[CorpusFile]) -> tuple[Mapping[str, Any] | None, str]:
    """Return the first record of these files, None if no record can be read, and the file that it is from."""
    with_records = [file for file in files if not FORMATS[file.format].plain and file.fault is None]
    for file in with_records[:_FILES]:
        record = first_record(file)
        if record is not None:
            return record, shown(file.location)
    return None, ""


def first_record(file: CorpusFile) -> Mapping[str, Any] | None:
    """Return the first record of a file, with null for what a row of a table lacks; None if none can be read.

    A look costs no command: whatever goes wrong in it means that nothing is known.
    """
    first = FORMATS[file.format].first
    if first is None:
        return None
    try:
        with closing(open_raw(file.location)) as raw, closing(open_stream(raw, file.compression)) as stream:
            return first(stream)
    except Exception:  # of any library that is given a damaged file; reading it will tell
        return None


def peek(records: Iterable[Any]) -> tuple[Mapping[str, Any] | None, Iterable[Any]]:
    """Return the first record that a program gives, None if it is none; and all records, the first included.

    >>> peek(iter([{"messages": []}]))[0]
    {'messages': []}
    """
    if is_table(records):
        table: Any = PythonTable(records)
        return table.first(), table
    first: Any = None
    names = getattr(records, "column_names", None)
    if isinstance(names, list):  # a dataset of Hugging Face
        first = dict.fromkeys(names)
        if hasattr(records, "with_format"):
            first = next(map(row_of, records.with_format("arrow").iter(batch_size=1)), None)
    elif isinstance(records, Sequence):
        first = next(iter(records[:1]), None)
    elif not isinstance(records, Mapping):  # which is refused where it is read
        rest = iter(records)
        some = list(islice(rest, 1))
        first, records = next(iter(some), None), chain(some, _others(rest))
    if isinstance(first, Mapping):
        return {str(name): plain(value) for name, value in first.items()}, records
    return None, records


def _others(rest: Iterator[Any]) -> Iterator[Any]:
    """Yield what is left of an iterator; where `iter` is called on it again, a dataset may begin anew."""
    while True:
        try:
            record = next(rest)
        except StopIteration:
            return
        yield record
