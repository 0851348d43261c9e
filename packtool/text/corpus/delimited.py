"""CSV and TSV: a header, then one document a row.

In CSV (RFC 4180) a value may be quoted, holds newlines then, and a quote inside is doubled. In TSV, as IANA registers
it, a quote is a character like any other.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Any

from packtool.support.sizes import plural
from packtool.text.corpus.documents import document_of, listed, scalars_of, values_at
from packtool.text.corpus.records import (
    Fields,
    Readable,
    RecordBatch,
    Reject,
    UnusableFieldError,
    UnusableFileError,
)

_BATCH = 1 << 21
"""Bytes of a batch, about."""
_READ = 1 << 16


def read_delimited(stream: Readable, fields: Fields, format: str, limit: int) -> Iterator[RecordBatch]:
    """Read the documents of the rows of a table, numbered from 1 below the header.

    Every value is text as it stands, an empty one too. Rows with another number of values than the header are rejected,
    and so are rows in which text follows a closing quote.

    Args:
        stream: uncompressed bytes.
        format: csv or tsv.
        limit: characters of a row.

    Raises:
        UnusableFileError: a column is not there, a row is longer than the limit, or a quote is never closed.
    """
    if fields.ids:
        raise UnusableFileError("bad-ids", "a table of text, which has no lists of token ids")
    lines = _Lines(stream, limit)
    csv.field_size_limit(max(limit, csv.field_size_limit()))  # the library's own, 128 KiB, is far below ours
    rows = _rows(lines, format)
    header = _next(rows, lines, 0)
    if header is None:
        return
    if isinstance(header, Reject):
        raise UnusableFileError(header.code, f"in the header, {header.reason}")
    _require(header, fields)
    batch = _empty(fields)
    number = 0
    while (row := _next(rows, lines, number + 1)) is not None:
        if row != []:  # which a blank line is
            number += 1
            batch.records += 1
            _add(batch, fields, header, row)
        if lines.bytes >= _BATCH:
            batch.bytes = lines.taken()
            yield batch
            batch = _empty(fields)
    batch.bytes = lines.taken()
    yield batch


def header_of(stream: Readable, format: str) -> list[str]:
    """Return the names in the first row of a table.

    Raises:
        UnusableFileError: it can't be read.
    """
    lines = _Lines(stream, _READ)
    header = _next(_rows(lines, format), lines, 0)
    return header if isinstance(header, list) else []


def _rows(lines: _Lines, format: str) -> Any:
    if format == "csv":
        return csv.reader(lines, strict=True)
    return csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)


def _empty(fields: Fields) -> RecordBatch:
    return RecordBatch(columns=[[] for _ in fields.columns])


def _next(rows: Any, lines: _Lines, number: int) -> list[str] | Reject | None:
    """Return the next row, or why it can't be used; None at the end of the file.

    Args:
        number: of the row, for messages.

    Raises:
        UnusableFileError: its quote is never closed.
    """
    lines.row = lines.in_row = 0
    try:
        row: list[str] | None = next(rows, None)
    except csv.Error as error:
        if "unexpected end" in str(error):
            what = f"a quote is opened in row {number} and never closed: all that follows is lost"
            raise UnusableFileError(
                "damaged-file", what, "close the quote, or double it if it is a character"
            ) from None
        what = "text follows a closing quote; a quote inside of a value is doubled"
        if lines.in_row > 1:
            what += f", and {lines.in_row} lines are lost together"
        return Reject(0, "bad-table-row", what)
    return row


def _add(batch: RecordBatch, fields: Fields, header: list[str], row: list[str] | Reject) -> None:
    """Add the last row to a batch."""
    try:
        if isinstance(row, Reject):
            raise UnusableFieldError(row.code, row.reason)
        if len(row) != len(header):
            what = f"{plural(len(row), 'value')}, where the header has {len(header)}"
            raise UnusableFieldError("bad-table-row", what)
        record = dict(zip(header, row, strict=True))
        document = document_of(fields, values_at(record, fields.document), header)
        if "\0" in "".join(row):
            raise UnusableFieldError("damaged-file", "a zero byte, as in a file that was not written to its end")
        scalars = scalars_of(fields, values_at(record, fields.columns), header)
    except UnusableFieldError as error:
        code, reason = error.args
        # Bytes that are not UTF-8 are halves of surrogate pairs here.
        code, reason = ("invalid-utf8", "not valid UTF-8") if code == "lone-surrogate" else (code, reason)
        batch.rejects.append(Reject(batch.records, code, reason))
        return
    batch.documents.append(document)
    batch.numbers.append(batch.records)
    for column, value in zip(batch.columns, scalars, strict=True):
        column.append(value)


def _require(header: list[str], fields: Fields) -> None:
    """Require a table to have the columns that are read, each of them once.

    Raises:
        UnusableFileError: it has not.
    """
    held = [name for name in fields.document if name in header]
    lacking = fields.lacking(held)
    if lacking:
        raise UnusableFileError("missing-text", f"{lacking}; {listed(header)}")
    for name in fields.columns:
        if name not in header:
            raise UnusableFileError("bad-field", f"no column {name!r}; {listed(header)}")
    for name in (*held, *fields.columns):
        times = header.count(name)
        if times > 1:
            raise UnusableFileError("missing-text", f"{times} columns are called {name!r}")


class _Lines:
    """Lines of text, with their ends.

    Args:
        limit: characters of a row, which may have several lines.

    Attributes:
        row, in_row: characters and lines of the row that is read.
        bytes: that were read, and not taken yet.
    """

    def __init__(self, stream: Readable, limit: int) -> None:
        self._raw = _Raw(stream)
        buffered = io.BufferedReader(self._raw, _READ)
        self._text = io.TextIOWrapper(buffered, "utf-8-sig", errors="surrogateescape", newline="")
        self._limit = limit
        self._taken = 0
        self.row = self.in_row = 0

    def __iter__(self) -> _Lines:
        return self

    def __next__(self) -> str:
        line = self._text.readline(self._limit + 1)
        self.row += len(line)
        self.in_row += 1
        if not line:
            raise StopIteration
        if self.row > self._limit:
            what = f"a row has more than {self._limit:,} characters, or its quote is never closed"
            raise UnusableFileError("damaged-file", what)
        return line

    @property
    def bytes(self) -> int:
        return self._raw.count - self._taken

    def taken(self) -> int:
        """Return these bytes, once."""
        count, self._taken = self.bytes, self._raw.count
        return count


class _Raw(io.RawIOBase):
    """A stream as the standard library wants it.

    Attributes:
        count: bytes that were read.
    """

    def __init__(self, stream: Readable) -> None:
        super().__init__()
        self._stream = stream
        self.count = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        data = self._stream.read(len(buffer))
        buffer[: len(data)] = data
        self.count += len(data)
        return len(data)
