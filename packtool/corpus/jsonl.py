"""JSON Lines: one object a line, the text in one of its fields."""

from __future__ import annotations

import functools
import json
import operator
import re
from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np

from packtool.corpus.lines import line_chunks
from packtool.corpus.open import Readable
from packtool.corpus.records import Batch, Reject

LONG = 1 << 23
"""Lines of more bytes are never held as one `str`, which can take four bytes for each character."""
_PIECE = 1 << 20
_BOM = b"\xef\xbb\xbf"
_NEWLINE, _RETURN, _OPEN, _CLOSE = b"\n\r{}"


def read_jsonl(stream: Readable, field: str, start: int = 0, stop: int = -1) -> Iterator[Batch]:
    """Documents of the lines that begin in bytes [start, stop).

    Args:
        stream: uncompressed bytes.
        field: name of the text field; dots go down into nested objects (`a.b`), else a field may have the dotted name.
        start, stop: see `line_chunks`.
    """
    parser = _Parser(field)
    first = start == 0
    for chunk in line_chunks(stream, start, stop):
        lines = chunk[len(_BOM) :] if first and chunk[:3] == _BOM else chunk
        first = False
        batch = parser.fast(lines) or parser.slow(lines)
        batch.bytes = len(chunk)
        yield batch


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
    def __init__(self, field: str) -> None:
        self._field = field
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
        if len(lines) > LONG or lines[:1] != b"{":
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
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return None
        if len(records) != len(ends):
            return None
        return Batch(documents=list(map(self._value, records)), records=len(records))

    def slow(self, lines: bytes | bytearray) -> Batch:
        """One line after another, with the reason for each that can't be used."""
        batch = Batch()
        view = memoryview(lines)
        at = 0
        while at < len(lines):
            end = lines.find(b"\n", at) + 1 or len(lines)
            line = view[at:end]
            at = end
            batch.records += 1
            short = None if len(line) > LONG else bytes(line).strip()
            if short == b"":
                continue
            try:
                batch.documents.append(self._long(line) if short is None else self._text(short))
            except _UnusableError as error:
                code, reason = error.args
                batch.rejects.append(Reject(batch.records, code, reason, bytes(line).rstrip(b"\r\n")))
        return batch

    def _text(self, line: bytes) -> str:
        try:
            found: str = self._value(self._decoder.decode(line))
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return self._judge(line)
        return found

    def _judge(self, line: bytes) -> str:
        """The text of a line that the quick parser refused, by the standard library's more lenient one.

        That one takes NaN, and lone surrogates in fields that are not the text.
        """
        try:
            value = json.loads(line.decode())
        except UnicodeDecodeError:
            raise _UnusableError("invalid-utf8", "not valid UTF-8") from None
        except json.JSONDecodeError as error:
            raise _UnusableError(
                "invalid-json", f"not valid JSON: {error.msg.removesuffix(' at')} at column {error.colno}"
            ) from None
        except (RecursionError, ValueError):
            raise _UnusableError("invalid-json", "not valid JSON: nested too deep, or a number too long") from None
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
                    raise _UnusableError("missing-text", f"no text field {self._field!r}")
                value = record[self._field]
                break
            value = value[name]
        if not isinstance(value, str):
            raise _UnusableError("missing-text", f"text field {self._field!r} is {_kind(value)}, not a string")
        return value

    def _long(self, line: memoryview) -> LongString:
        try:
            raw = _descend(line, self._path) or _descend(line, [self._field])
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            reason = str(error).removeprefix("JSON is malformed: ")
            if "utf-16" in reason or "hex escape" in reason:
                raise _UnusableError("lone-surrogate", "lone surrogate, or another bad \\u escape") from None
            raise _UnusableError("invalid-json", f"not valid JSON: {reason}") from None
        if raw is None:
            raise _UnusableError("missing-text", f"no text field {self._field!r}")
        text = memoryview(raw)
        if text[0] != ord('"'):
            raise _UnusableError("missing-text", f"text field {self._field!r} is not a string")
        found = LongString(text)
        try:
            for _ in found:
                pass
        except UnicodeDecodeError:
            raise _UnusableError("invalid-utf8", "not valid UTF-8") from None
        except msgspec.MsgspecError:
            raise _UnusableError("lone-surrogate", f"lone surrogate in text field {self._field!r}") from None
        return found


class _UnusableError(Exception):
    pass


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true or false"
    names = {int: "a number", float: "a number", str: "a string", list: "an array", dict: "an object"}
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
