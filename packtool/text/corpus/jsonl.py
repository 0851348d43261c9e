"""JSON Lines: one object a line, the text in one of its fields.

A chunk of lines is parsed as a whole where nothing in it needs a closer look. Otherwise each of its lines is parsed by
itself, and where that fails judged by the standard library's parser, which says what is wrong.
"""

from __future__ import annotations

import codecs
import json
import re
import sys
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from operator import attrgetter
from typing import Any

import msgspec
import numpy as np

from packtool.support.decoding import prepared
from packtool.text.conversations.layouts import ANSWERS, MESSAGES, PREFERENCE
from packtool.text.conversations.message import kind_of
from packtool.text.corpus.documents import document_of, scalars_of
from packtool.text.corpus.records import (
    RECORD_BYTES,
    Fields,
    Literal,
    MadeDocument,
    Readable,
    RecordBatch,
    require_size,
    scalar,
    text_in,
)
from packtool.text.corpus.text import ZEROS, line_batches
from packtool.text.faults import Fault
from packtool.text.paths import steps

_DEPTH = 1000
"""Calls that a parser may nest; each level of JSON takes one. From Python 3.12 on parsers have a limit of their own."""
_SMALL = 1 << 18
"""Bytes that are decoded sooner than Arrow is loaded, which checks several times as fast."""
_REJECTS = 1 << 12
"""Records that can't be used with which a batch ends: each takes some hundred bytes, and every line may be one."""
_NEWLINE, _RETURN, _OPEN, _CLOSE = b"\n\r{}"
_SPACE = b" \t\r\n"
"""Whitespace in JSON."""
_BLANK = re.compile(rb"(?:[ \t\r]*+\n)++")
_SCALAR = str | int | float | bool | None
_UNNAMABLE = re.compile(r'["\\\x00-\x1f\ud800-\udfff]')
"""What msgspec takes in no name of a field."""
_REFUSED = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""Errors of the quick parser."""


def read_jsonl(
    stream: Readable, fields: Fields, limit: int = RECORD_BYTES, start: int = 0, stop: int = -1
) -> Iterator[RecordBatch]:
    """Read the documents of the lines that begin in bytes [start, stop).

    Args:
        stream: uncompressed bytes.
        fields: to read. Dots go down into nested objects (`a.b`), else a field may have the dotted name.
        limit: bytes of a line; longer ones are rejected.
        start, stop: see `line_chunks`.
    """
    parser = RecordParser(fields, limit)

    def parse(lines: bytes | bytearray) -> list[RecordBatch]:
        with same_depth():
            fast = parser.fast(lines)
            return [fast] if fast else list(parser.each(_lines(lines)))

    return line_batches(stream, fields, start, stop, limit, parse)


class RecordParser:
    """Makes documents of the JSON text of records.

    Args:
        limit: bytes of a record; longer ones are rejected.
    """

    def __init__(self, fields: Fields, limit: int) -> None:
        self._fields = fields
        self._limit = limit
        self._names = tuple(dict.fromkeys((fields.text, *fields.columns)))
        self._plain = fields.plain and all(steps(name) == (name,) for name in self._names)
        self._missing = set(fields.optional)
        self._decoder = self._quick()

    def _quick(self) -> Any:
        """Make a parser of objects; None if msgspec can't have the names of their fields.

        The document of a plain record is checked where it is parsed; any other record is parsed whole.
        """
        if not self._plain:
            return prepared(dict[str, Any])
        if any(map(_UNNAMABLE.search, self._names)):
            return None
        places = [f"f{number}" for number in range(len(self._names))]
        scalars: list[Any] = [(place, _SCALAR, None) for place in places[1:]]
        members = [("f0", list[int] if self._fields.ids else str), *scalars]
        rename = dict(zip(places, self._names, strict=True))
        if self._fields.by_name:  # a record with these fields needs a closer look
            names = [name for name in (*MESSAGES, *ANSWERS, *PREFERENCE) if name not in self._names]
            members += [(name, None, None) for name in names]
        return prepared(msgspec.defstruct("Record", members, rename=rename))

    def fast(self, lines: bytes | bytearray) -> RecordBatch | None:
        """Parse all lines together; return None if one of them needs a closer look.

        The parser takes any whitespace between objects: several on a line, or one on several lines. Where every line
        begins with { and ends with }, no object can go on over a newline; so as many objects as lines mean one on each.
        """
        # Lines that are no longer than the limit all together hold no line beyond it.
        if self._decoder is None or len(lines) > self._limit or lines[:1] != b"{" or not is_utf8(lines):
            return None
        text = np.frombuffer(lines, np.uint8)
        ends = np.flatnonzero(text == _NEWLINE)
        if len(ends) == 0 or ends[-1] != len(text) - 1:
            ends = np.append(ends, len(text))  # nothing ends the last line
        last = text[ends - 1 - (text[ends - 1] == _RETURN)]  # a line may end with \r\n
        begins_of_others = ends[:-1] + 1
        if (last != _CLOSE).any() or (text[begins_of_others] != _OPEN).any():
            return None
        try:
            records = self._decoder.decode_lines(lines)
            if len(records) != len(ends):
                return None
            return self._batch_of(records)
        except (*_REFUSED, Fault):
            return None

    def _batch_of(self, records: list[Any]) -> RecordBatch:
        """Make a batch of parsed records."""
        fields = self._fields
        batch = RecordBatch(fields, records=len(records), missing=self._missing)
        columns: list[list[str | None]] = []
        if not self._plain:
            documents = []
            columns = [[] for _ in fields.columns]
            for record in records:
                document, scalars = self._found(record, ())
                documents.append(document)
                for column, value in zip(columns, scalars, strict=True):
                    column.append(value)
            batch.take(documents, columns)
            return batch
        for name in fields.columns:
            values = map(attrgetter(f"f{self._names.index(name)}"), records)
            columns.append([scalar(value, name) for value in values])
        if fields.required and None in columns[fields.columns.index(fields.required)]:
            raise Fault("bad-field", f"no field {fields.required!r}")
        batch.take(list(map(attrgetter("f0"), records)), columns)
        return batch

    def each(self, records: Iterable[tuple[bytes | memoryview, int]]) -> Iterator[RecordBatch]:
        """Parse one record after another, with the reason for each that can't be used.

        Args:
            records: the text of each, and how many records it is: blank lines are several, and no document.
        """
        batch = RecordBatch(self._fields, missing=self._missing)
        for text, count in records:
            batch.records += count
            batch.add(batch.records, self._record, text)
            if len(batch.rejects) == _REJECTS:
                yield batch
                batch = RecordBatch(self._fields, missing=self._missing)
        yield batch

    def _record(self, text: bytes | memoryview) -> MadeDocument | None:
        """Parse the text of a record and the fields to keep; None for a blank text."""
        require_size(len(text), self._limit)
        # A byte order mark may lie at the beginning of any line, where files were joined.
        short = bytes(text).strip(_SPACE).removeprefix(BOM_UTF8).lstrip(_SPACE)
        if not short:
            return None
        if self._decoder is None or self._fields.columns or not is_utf8(short):
            return self._judge(short)
        try:
            batch = self._batch_of([self._decoder.decode(short)])
        except (*_REFUSED, Fault):
            return self._judge(short)
        return batch.documents[0], []

    def _judge(self, text: bytes) -> MadeDocument:
        """Judge a record that the quick parser refused by the standard library's more lenient one.

        That one takes NaN, and lone surrogates in fields that are not read.
        """
        try:
            # Numbers of any length; those of a conversation are for its template, which reads numbers.
            record = json.loads(text_in(text), parse_int=None if self._fields.chat else Literal)
        except json.JSONDecodeError as error:
            raise _no_json(text, error) from None
        except RecursionError:
            raise Fault("invalid-json", "JSON nested too deeply") from None
        except ValueError:
            raise Fault("invalid-json", "a number of thousands of digits") from None
        if not isinstance(record, dict):
            raise Fault("invalid-json", f"not a JSON object but {kind_of(record)}")
        return self._found(record, record)

    def _found(self, record: dict[str, Any], known: Iterable[str]) -> MadeDocument:
        """Return the document and the scalars of a record."""
        fields = self._fields
        document = document_of(fields, record, known, self._missing)
        if not fields.columns:
            return document, []
        return document, scalars_of(fields, record, known)


def _no_json(text: bytes, error: json.JSONDecodeError) -> Fault:
    """Return what is wrong with a text that is no JSON object."""
    rest = error.doc[error.pos :].strip()
    what = f"not valid JSON: {error.msg.removesuffix(' at')} at column {error.colno}"
    if ZEROS in text:
        return Fault("damaged-file", "a run of zero bytes, as in a file that was not written to its end")
    if text.startswith(b"{'"):
        what = "not JSON but an expression of Python, which json.dumps writes as JSON"
    elif error.msg == "Extra data" and rest == ",":
        what = "an object and a comma, as an array's elements have it: sed 's/,$//' removes it"
    elif error.msg == "Extra data" and rest.startswith("{"):
        what = "several objects on one line: jq -c . divides them"
    return Fault("invalid-json", what)


def _lines(lines: bytes | bytearray) -> Iterator[tuple[memoryview, int]]:
    """Yield each line without its end, and that it is one; blank lines together, with their number."""
    view = memoryview(lines)
    at = 0
    while at < len(lines):
        blank = _BLANK.match(lines, at)
        if blank:
            yield view[:0], lines.count(b"\n", at, blank.end())
            at = blank.end()
            continue
        end = lines.find(b"\n", at) + 1 or len(lines)
        line = view[at:end]
        yield line[: len(line) - _ending(line)], 1
        at = end


@contextmanager
def same_depth() -> Iterator[None]:
    """Allow the same depth of nesting however deep the call that reads: results must not depend on who calls."""
    before = sys.getrecursionlimit()
    depth, frame = 0, sys._getframe()
    while frame.f_back is not None:
        depth, frame = depth + 1, frame.f_back
    sys.setrecursionlimit(depth + _DEPTH)
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def is_utf8(data: bytes | bytearray) -> bool:
    """Return whether all of it is valid UTF-8, since parsers check only the parts they need."""
    if data.isascii():
        return True
    if len(data) < _SMALL:
        try:
            codecs.utf_8_decode(data, "strict", True)
        except UnicodeDecodeError:
            return False
        return True
    import pyarrow as pa

    ends = pa.py_buffer(np.array([0, len(data)], np.int64))
    try:
        pa.LargeStringArray.from_buffers(1, ends, pa.py_buffer(data)).validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _ending(line: memoryview) -> int:
    """Count the bytes of the line's end."""
    tail = bytes(line[-2:])
    return 2 if tail == b"\r\n" else int(tail[-1:] == b"\n")
