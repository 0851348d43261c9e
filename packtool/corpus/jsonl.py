"""JSON Lines: one object a line, the text in one of its fields."""

from __future__ import annotations

import functools
import json
import operator
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import numpy as np

from packtool.corpus.lines import LongLine, line_chunks, too_long
from packtool.corpus.open import Readable
from packtool.corpus.records import RECORD_BYTES, Batch, Document, Reject, reject, too_large

LONG = 1 << 23
"""Lines of more bytes are never held as one `str`, which can take four bytes for each character."""
_PIECE = 1 << 20
_REJECTS = 1 << 12
"""Records of a batch that can't be used, about: each takes some hundred bytes, and a line may have one."""
_DEPTH = 1000
"""Calls that a parser may nest; each level of JSON takes one."""
_BOM = b"\xef\xbb\xbf"
_NEWLINE, _RETURN, _OPEN, _CLOSE = b"\n\r{}"
_SPACE = b" \t\r\n"
"""What JSON takes for whitespace."""
_BLANK = re.compile(rb"(?:[ \t\r]*+\n)++")


def read_jsonl(
    stream: Readable, field: str, start: int = 0, stop: int = -1, limit: int = RECORD_BYTES
) -> Iterator[Batch]:
    """Documents of the lines that begin in bytes [start, stop).

    Args:
        stream: uncompressed bytes.
        field: name of the text field; dots go down into nested objects (`a.b`), else a field may have the dotted name.
        start, stop: see `line_chunks`.
        limit: bytes of a line; longer ones are rejected.
    """
    parser = _Parser(field, limit)
    first = start == 0
    for chunk in line_chunks(stream, start, stop, limit):
        if isinstance(chunk, LongLine):
            batches = [Batch(rejects=[too_long(chunk, limit)], records=1, bytes=chunk.size)]
        else:
            lines = chunk[len(_BOM) :] if first and chunk[:3] == _BOM else chunk
            with _same_depth():
                fast = parser.fast(lines)
                batches = [fast] if fast else list(parser.slow(lines))
            batches[-1].bytes = len(chunk)
        first = False
        yield from batches


@contextmanager
def _same_depth() -> Iterator[None]:
    """The same nesting is too deep, however deep the call that reads: results must not depend on who calls."""
    before = sys.getrecursionlimit()
    depth, frame = 0, sys._getframe()
    while frame.f_back is not None:
        depth, frame = depth + 1, frame.f_back
    sys.setrecursionlimit(depth + _DEPTH)
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


class LongString:
    """A long JSON string, decoded piece by piece.

    Args:
        raw: the JSON string with its quotes.
    """

    def __init__(self, raw: memoryview) -> None:
        self._raw = raw

    def __iter__(self) -> Iterator[str]:
        at, end = 1, len(self._raw) - 1
        while at < end:
            cut = _cut(self._raw, at, min(at + _PIECE, end), end)
            yield msgspec.json.decode(b'"' + bytes(self._raw[at:cut]) + b'"', type=str)
            at = cut


_UNITS = re.compile(
    rb"(?:[^\\]++|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u(?![dD][89abAB])[0-9a-fA-F]{4}|\\[^u])*+"
)


def _cut(raw: memoryview, at: int, limit: int, end: int) -> int:
    """A place up to `limit`, the last but a few, that splits neither escape, nor surrogate pair, nor character."""
    if limit == end:
        return end
    space = bytes(raw[at:limit]).rfind(b" ")  # no escape has one
    if space > 0:
        return at + space
    match = _UNITS.match(raw, at, limit)
    cut = match.end() if match else at
    while cut > at and raw[cut] & 0xC0 == 0x80:
        cut -= 1
    return cut if cut > at else end  # not JSON: let decoding say so


class _Parser:
    def __init__(self, field: str, limit: int) -> None:
        self._field = field
        self._limit = limit
        self._path = field.split(".")
        record: Any = str
        for name in reversed(self._path):
            record = msgspec.defstruct("Record", [("value", record)], rename={"value": name})
        self._decoder = msgspec.json.Decoder(record)
        self._value = operator.attrgetter(".".join(["value"] * len(self._path)))

    def fast(self, lines: bytes | bytearray) -> Batch | None:
        """All lines at once, or None if any of them needs a closer look.

        Where every line begins with { and ends with }, no object can go on over a newline; so an equal number of
        objects means one on each line.
        """
        if len(lines) > min(LONG, self._limit) or lines[:1] != b"{" or not _is_utf8(lines):
            return None
        text = np.frombuffer(lines, np.uint8)
        ends = np.flatnonzero(text == _NEWLINE)
        if len(ends) == 0 or ends[-1] != len(text) - 1:
            ends = np.append(ends, len(text))
        last = text[ends - 1]
        if last[0] == _RETURN:
            last = text[ends - 2]
        if (last != _CLOSE).any() or (text[ends[:-1] + 1] != _OPEN).any():
            return None
        try:
            records = self._decoder.decode_lines(lines)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return None
        if len(records) != len(ends):
            return None
        return Batch(list(map(self._value, records)), range(1, len(records) + 1), records=len(records))

    def slow(self, lines: bytes | bytearray) -> Iterator[Batch]:
        """One line after another, with the reason for each that can't be used."""
        batch, numbers = Batch(), list[int]()
        view = memoryview(lines)
        at = 0
        while at < len(lines):
            blank = _BLANK.match(lines, at)
            if blank:
                batch.records += lines.count(b"\n", at, blank.end())
                at = blank.end()
                continue
            end = lines.find(b"\n", at) + 1 or len(lines)
            line = view[at:end]
            at = end
            batch.records += 1
            try:
                document = self._line(line)
            except _UnusableError as error:
                code, reason = error.args
                batch.rejects.append(self._reject(batch.records, code, reason, line))
                if len(batch.rejects) == _REJECTS:
                    batch.numbers = numbers
                    yield batch
                    batch, numbers = Batch(), list[int]()
            else:
                if document is not None:
                    batch.documents.append(document)
                    numbers.append(batch.records)
        batch.numbers = numbers
        yield batch

    def _line(self, line: memoryview) -> Document | None:
        """The text of a line; None for a blank one."""
        if len(line) > self._limit:
            size = len(line) - _ending(line)
            if size > self._limit:
                raise _UnusableError("record-too-large", too_large(size, self._limit))
        if len(line) > LONG:
            return self._long(line)
        short = bytes(line).strip(_SPACE)
        return self._text(short) if short else None

    @staticmethod
    def _reject(record: int, code: str, reason: str, line: memoryview) -> Reject:
        return reject(record, code, reason, line[: len(line) - _ending(line)])

    def _text(self, line: bytes) -> str:
        if _is_utf8(line):
            try:
                found: str = self._value(self._decoder.decode(line))
                return found
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                pass
        return self._judge(line)

    def _judge(self, line: bytes) -> str:
        """The text of a line that the quick parser refused, by the standard library's more lenient one.

        That one takes NaN, and lone surrogates in fields that are not the text.
        """
        try:
            value = json.loads(line.decode(), parse_int=float)  # of any length, and never looked at
        except UnicodeDecodeError:
            raise _UnusableError("invalid-utf8", "not valid UTF-8") from None
        except json.JSONDecodeError as error:
            raise _UnusableError(
                "invalid-json", f"not valid JSON: {error.msg.removesuffix(' at')} at column {error.colno}"
            ) from None
        except RecursionError:
            raise _UnusableError("invalid-json", "JSON nested too deeply") from None
        if not isinstance(value, dict):
            raise _UnusableError("invalid-json", f"not a JSON object but {_kind(value)}")
        text = self._find(value)
        try:
            text.encode()
        except UnicodeEncodeError:
            raise _UnusableError("lone-surrogate", f"lone surrogate in text field {self._field!r}") from None
        return text

    def _find(self, record: dict[str, Any]) -> str:
        value: Any = record
        for name in self._path:
            if not isinstance(value, dict) or name not in value:
                if self._field not in record:
                    raise _UnusableError("missing-text", f"no text field {self._field!r}; {_fields(record)}")
                value = record[self._field]
                break
            value = value[name]
        if not isinstance(value, str):
            raise _UnusableError("missing-text", f"text field {self._field!r} is {_kind(value)}, not a string")
        return value

    def _long(self, line: memoryview) -> Document | None:
        """As `_text`, without a copy of the line where nothing is wrong with it."""
        if _is_utf8(line):
            try:
                raw = _descend(line, self._path) or _descend(line, [self._field])
                if raw is not None and memoryview(raw)[0] == ord('"'):
                    found = LongString(memoryview(raw))
                    for _ in found:
                        pass
                    return found
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                pass
        copy = bytes(line).strip(_SPACE)
        return self._judge(copy) if copy else None


class _UnusableError(Exception):
    pass


def _is_utf8(data: bytes | bytearray | memoryview) -> bool:
    """Whether all of it is valid UTF-8. Parsers look only at what they need."""
    if not isinstance(data, memoryview) and data.isascii():
        return True
    import pyarrow as pa

    ends = pa.py_buffer(np.array([0, len(data)], np.int64))
    try:
        pa.LargeStringArray.from_buffers(1, ends, pa.py_buffer(data)).validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _ending(line: memoryview) -> int:
    """Bytes of the line's end."""
    tail = bytes(line[-2:])
    return 2 if tail == b"\r\n" else int(tail[-1:] == b"\n")


def _fields(record: dict[str, Any]) -> str:
    """The fields of a record, for those who looked for another."""
    names = [name[:40] for name in list(record)[:12]]
    return f"there are {', '.join(names)}{' and others' * (len(record) > 12)}" if names else "the object is empty"


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true or false"
    names = {float: "a number", str: "a string", list: "an array", dict: "an object"}
    return names[type(value)]


@functools.cache
def _raw_struct(field: str) -> type[Any]:
    fields = [("value", msgspec.Raw | msgspec.UnsetType, msgspec.UNSET)]
    return msgspec.defstruct("RawRecord", fields, rename={"value": field})


def _descend(line: memoryview, path: list[str]) -> Any:
    """The raw JSON of a field, or None where there is none. Copies nothing."""
    raw: Any = line
    for name in path:
        raw = msgspec.json.decode(raw, type=_raw_struct(name)).value
        if raw is msgspec.UNSET:
            return None
    return raw
