"""Tables of text, such as CSV and TSV: a header, then one document a row.

In CSV (RFC 4180) a value may be quoted, holds newlines then, and a quote inside is doubled. In TSV, as IANA registers
it, a quote is a character like any other.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import zip_longest
from typing import Any

from packtool.support.sizes import plural
from packtool.text.corpus.documents import document_of, fields_there, scalars_of
from packtool.text.corpus.records import RECORD_BYTES, Fields, MadeDocument, Readable, RecordBatch
from packtool.text.corpus.text_format import TextFormat
from packtool.text.faults import Fault

_BATCH = 1 << 21
"""Bytes of a batch, about."""
_READ = 1 << 16


def delimited(name: str, suffixes: tuple[str, ...], **dialect: Any) -> TextFormat:
    """Return a format of such tables.

    Args:
        dialect: as `csv.reader` takes it.
    """
    return TextFormat(
        name=name,
        suffixes=suffixes,
        read=partial(read_delimited, dialect=dialect),
        first=partial(_first_row, dialect=dialect),
    )


def read_delimited(
    stream: Readable, fields: Fields, limit: int, *, dialect: Mapping[str, Any]
) -> Iterator[RecordBatch]:
    """Read the documents of the rows of a table, numbered from 1 below the header.

    Every value is text as it stands, an empty one too. Rows with another number of values than the header are rejected,
    and so are rows in which text follows a closing quote.

    Args:
        stream: uncompressed bytes.
        limit: characters of a row.
        dialect: see `delimited`.

    Raises:
        Fault: a column is not there, a row is longer than the limit, or a quote is never closed.
    """
    if fields.ids:
        raise Fault("bad-ids", "a table of text, which has no lists of token ids")
    lines = _Lines(stream, limit)
    rows = _rows(lines, limit, dialect)
    header = _next(rows, lines, 0)
    if header is None:
        return
    if isinstance(header, Fault):
        raise Fault(header.code, f"in the header, {header.what}")
    if "\0" in "".join(header):
        raise Fault("damaged-file", "a zero byte in the header")
    _require(header, fields)
    missing = set(fields.optional)
    document = partial(_document, fields, header, missing)
    batch = RecordBatch(fields, missing=missing)
    number = 0
    while (row := _next(rows, lines, number + 1)) is not None:
        if row != []:  # which a blank line is
            number += 1
            batch.records += 1
            batch.add(batch.records, document, row)
        if lines.bytes >= _BATCH:
            batch.bytes = lines.taken()
            yield batch
            batch = RecordBatch(fields, missing=missing)
    batch.bytes = lines.taken()
    yield batch


def _first_row(stream: Readable, *, dialect: Mapping[str, Any]) -> dict[str, str] | None:
    """Return the first row of a table below its header, with empty texts for what it lacks; None without a header."""
    lines = _Lines(stream, RECORD_BYTES)
    rows = _rows(lines, RECORD_BYTES, dialect)
    header = _next(rows, lines, 0)
    if not isinstance(header, list):
        return None
    row = _next(rows, lines, 1)
    while row == []:  # a blank line
        row = _next(rows, lines, 1)
    values: list[str] = []
    if isinstance(row, list):
        values = row[: len(header)]
    return dict(zip_longest(header, values, fillvalue=""))


def _rows(lines: _Lines, limit: int, dialect: Mapping[str, Any]) -> Any:
    """Return a reader of rows whose values are bounded by `lines` alone: the library's own limit is 128 KiB."""
    csv.field_size_limit(max(limit, csv.field_size_limit()))
    return csv.reader(lines, **dialect)


def _next(rows: Any, lines: _Lines, number: int) -> list[str] | Fault | None:
    """Return the next row, or why it can't be used; None at the end of the file.

    Args:
        number: of the row, for messages.
    """
    lines.row = lines.in_row = 0
    try:
        row: list[str] | None = next(rows, None)
    except csv.Error as error:
        if "unexpected end" in str(error):
            what = f"a quote is opened in row {number} and never closed: all that follows is lost"
            raise Fault("damaged-file", what, "close the quote, or double it if it is a character") from None
        what = "text follows a closing quote; a quote inside of a value is doubled"
        if lines.in_row > 1:
            what += f", and {lines.in_row} lines are lost together"
        return Fault("bad-table-row", what)
    return row


def _document(fields: Fields, header: list[str], missing: set[str], row: list[str] | Fault) -> MadeDocument:
    """Return the document and the scalars of a row."""
    if isinstance(row, Fault):
        raise row
    if len(row) != len(header):
        raise Fault("bad-table-row", f"{plural(len(row), 'value')}, where the header has {len(header)}")
    record = dict(zip(header, row, strict=True))
    try:
        document = document_of(fields, record, header, missing)
        if "\0" in "".join(row):
            raise Fault("damaged-file", "a zero byte, as in a file that was not written to its end")
        return document, scalars_of(fields, record, header)
    except Fault as fault:
        if fault.code == "lone-surrogate":  # half of a pair, as which a byte is read that is not UTF-8
            raise Fault("invalid-utf8", "not valid UTF-8") from None
        raise


def _require(header: list[str], fields: Fields) -> None:
    """Require a table to have the columns without which it has no documents, and each that is read once."""
    held = [name for name in fields.document if name in header]
    lacking = fields.lacking(held)
    if lacking:
        raise Fault("missing-text", f"{lacking}; {fields_there(header)}")
    if fields.required and fields.required not in header:
        raise Fault("bad-field", f"no column {fields.required!r}; {fields_there(header)}")
    for name in (*held, *fields.columns):
        times = header.count(name)
        if times > 1:
            code = "missing-text" if name in held else "bad-field"
            raise Fault(code, f"{times} columns are called {name!r}")


class _Lines:
    """Lines of text, with their ends.

    Args:
        limit: characters of a row, which may have several lines.

    Attributes:
        row, in_row: characters and lines of the row that is read.
        bytes: that were read, and not taken yet.
    """

    def __init__(self, stream: Readable, limit: int) -> None:
        self._raw = RawStream(stream)
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
            raise Fault("damaged-file", what)
        return line

    @property
    def bytes(self) -> int:
        return self._raw.count - self._taken

    def taken(self) -> int:
        """Return these bytes, once."""
        count, self._taken = self.bytes, self._raw.count
        return count


class RawStream(io.RawIOBase):
    """A stream as the standard library wants it."""

    def __init__(self, stream: Readable) -> None:
        super().__init__()
        self._stream = stream
        self.count = 0  # bytes that were read

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        data = self._stream.read(len(buffer))
        buffer[: len(data)] = data
        self.count += len(data)
        return len(data)
