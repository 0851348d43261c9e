"""CSV and TSV: one document a row below the header, the text in one column."""

from __future__ import annotations

import csv as standard_csv
import io
from collections.abc import Iterator
from typing import Any

import msgspec

from packtool.corpus.parquet import batch_of, require_column, require_scalar
from packtool.corpus.records import Fields, Readable, RecordBatch, Reject, UnusableFileError, in_words
from packtool.sizes import plural

_BLOCK_BYTES = 1 << 24
"""Bytes parsed at a time, and the longest row."""
_HEADER_BYTES = 1 << 16


def read_table(stream: Readable, fields: Fields, delimiter: str, limit: int) -> Iterator[RecordBatch]:
    """Read the documents of the rows of a table, numbered from 1 below the header.

    Fields may be quoted, and then hold newlines; a quote inside is doubled. Every value is text as it stands, an empty
    one too. Rows with another number of values than the header are rejected.

    Args:
        stream: uncompressed bytes.
        delimiter: between two values.
        limit: bytes of a text; longer ones are rejected.

    Raises:
        UnusableFileError: it can't be parsed, or a column is not there.
    """
    import pyarrow as pa
    from pyarrow import csv

    if fields.ids:
        raise UnusableFileError("bad-ids", "a table of text, which has no lists of token ids")
    wrong: dict[int, str] = {}  # of rows that were parsed so far, by their number below the header

    def note(row: Any) -> str:
        what = f"{plural(row.actual_columns, 'value')}, where the header has {row.expected_columns}"
        wrong[row.number - 1] = what
        return "skip"

    buffered = io.BufferedReader(_Raw(stream), _HEADER_BYTES)
    try:
        reader = csv.open_csv(
            buffered,
            read_options=csv.ReadOptions(use_threads=False, block_size=_BLOCK_BYTES),
            parse_options=csv.ParseOptions(delimiter=delimiter, newlines_in_values=True, invalid_row_handler=note),
            convert_options=csv.ConvertOptions(
                # Else Arrow guesses each column's type from the first block, and fails where a later one differs.
                column_types={name: pa.string() for name in header(buffered.peek(), delimiter)},
                strings_can_be_null=False,
            ),
        )
        path = require_column(reader.schema, fields.text)
        others = [require_scalar(reader.schema, name) for name in fields.columns]
        before = 0
        for table in reader:
            batch = batch_of(table, fields, path, others, limit)
            _number(batch, len(table), wrong, before)
            batch.bytes = table.nbytes
            before += batch.records
            yield batch
        if wrong:
            last = max(wrong) - before
            rejects = [Reject(number - before, "bad-table-row", what) for number, what in wrong.items()]
            yield RecordBatch(columns=[[] for _ in fields.columns], rejects=rejects, records=last)
    except (pa.ArrowException, UnicodeDecodeError) as error:
        text = in_words(error)
        if "straddling" in text:
            text = f"a row has more than {_BLOCK_BYTES >> 20} MiB, or a quote is never closed"
        raise UnusableFileError("damaged-file", f"not a table of values: {text}") from None


def header(head: bytes, delimiter: str) -> list[str]:
    """Read the names in the first row of a table from its first bytes.

    >>> header(b'id,"full, text"\\n1,a\\n', ",")
    ['id', 'full, text']
    """
    text = io.StringIO(head.decode("utf-8-sig", "replace"), newline="")
    return next(standard_csv.reader(text, delimiter=delimiter), [])


def _number(batch: RecordBatch, rows: int, wrong: dict[int, str], before: int) -> None:
    """Number the rows of a batch together with the rejected ones, taken from `wrong`."""
    places: list[int] = []
    rejects: list[Reject] = []
    at = 0
    while len(places) < rows:
        at += 1
        if (what := wrong.pop(before + at, None)) is not None:
            rejects.append(Reject(at, "bad-table-row", what))
        else:
            places.append(at)
    rejects += [msgspec.structs.replace(reject, record=places[reject.record - 1]) for reject in batch.rejects]
    batch.rejects = sorted(rejects, key=lambda reject: reject.record)
    batch.numbers = [places[number - 1] for number in batch.numbers]
    batch.records = at


class _Raw(io.RawIOBase):
    """A stream as the library wants it."""

    def __init__(self, stream: Readable) -> None:
        super().__init__()
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        data = self._stream.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)
