"""JSON Lines: one object a line, the text in one of its fields."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np

from packtool.corpus.fields import Fields, Literal, UnusableFieldError, no_conversation, record_type, scalar
from packtool.corpus.json_values import (
    ending,
    fields_of,
    ids_of,
    is_utf8,
    kind_of,
    raw_field,
    require_whole,
    same_depth,
)
from packtool.corpus.lines import line_batches
from packtool.corpus.long_string import LongString
from packtool.corpus.open import Readable
from packtool.corpus.records import RECORD_BYTES, RecordBatch, reject, too_large

LONG = 1 << 23
"""Lines of more bytes are never held as one `str`, which can take four bytes for each character."""
_REJECTS = 1 << 12
"""Records of a batch that can't be used, about: each takes some hundred bytes, and a line may have one."""
_NEWLINE, _RETURN, _OPEN, _CLOSE = b"\n\r{}"
_SPACE = b" \t\r\n"
"""What JSON takes for whitespace."""
_BLANK = re.compile(rb"(?:[ \t\r]*+\n)++")


def read_jsonl(
    stream: Readable, fields: Fields | str, start: int = 0, stop: int = -1, limit: int = RECORD_BYTES
) -> Iterator[RecordBatch]:
    """Read the documents of the lines that begin in bytes [start, stop).

    Args:
        stream: uncompressed bytes.
        fields: to read, or the name of the text field alone. Dots go down into nested objects (`a.b`), else a field may
            have the dotted name.
        start, stop: see `line_chunks`.
        limit: bytes of a line; longer ones are rejected.
    """
    parser = _Parser(Fields(fields) if isinstance(fields, str) else fields, limit)

    def parse(lines: bytes | bytearray) -> list[RecordBatch]:
        with same_depth():
            fast = parser.fast(lines)
            return [fast] if fast else list(parser.slow(lines))

    return line_batches(stream, start, stop, limit, parse)


class _Parser:
    def __init__(self, fields: Fields, limit: int) -> None:
        self._fields = fields
        self._field = fields.text
        self._limit = limit
        self._path = fields.text.split(".")
        self._decoder: Any = None
        if (typed := record_type(fields)) is not None:
            kind, (self._value, *self._getters) = typed
            self._decoder = msgspec.json.Decoder(kind)

    def fast(self, lines: bytes | bytearray) -> RecordBatch | None:
        """Parse all lines together; None if any of them needs a closer look.

        Where every line begins with { and ends with }, no object can go on over a newline; so an equal number of
        objects means one on each line.
        """
        longest = min(LONG, self._limit) if self._decoder is not None else 0
        if len(lines) > longest or lines[:1] != b"{" or not is_utf8(lines):
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
        columns = [
            [scalar(value, name) for value in map(get, records)]
            for get, name in zip(self._getters, self._fields.columns, strict=True)
        ]
        lacks = self._fields.required and None in columns[self._fields.columns.index(self._fields.required)]
        if lacks or len(records) != len(ends):
            return None
        documents = list(map(self._value, records))
        if self._fields.chat and None in documents:
            return None
        return RecordBatch(documents, range(1, len(records) + 1), columns, records=len(records))

    def slow(self, lines: bytes | bytearray) -> Iterator[RecordBatch]:
        """Parse one line after another, with the reason for each that can't be used."""
        batch, numbers = self._empty(), list[int]()
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
                parsed = self._line(line)
            except UnusableFieldError as error:
                code, reason = error.args
                batch.rejects.append(reject(batch.records, code, reason, line[: len(line) - ending(line)]))
                if len(batch.rejects) == _REJECTS:
                    batch.numbers = numbers
                    yield batch
                    batch, numbers = self._empty(), list[int]()
            else:
                if parsed is not None:
                    document, values = parsed
                    batch.documents.append(document)
                    numbers.append(batch.records)
                    for column, value in zip(batch.columns, values, strict=True):
                        column.append(value)
        batch.numbers = numbers
        yield batch

    def _empty(self) -> RecordBatch:
        return RecordBatch(columns=[[] for _ in self._fields.columns])

    def _line(self, line: memoryview) -> _Found | None:
        """Parse the text of a line and the fields kept beside it; None for a blank line."""
        if len(line) > self._limit:
            size = len(line) - ending(line)
            if size > self._limit:
                raise UnusableFieldError("record-too-large", too_large(size, self._limit))
        if len(line) > LONG:
            return self._long(line)
        short = bytes(line).strip(_SPACE)
        return self._text(short) if short else None

    def _text(self, line: bytes) -> _Found:
        if self._decoder is not None and not self._fields.columns and is_utf8(line):
            try:
                text = self._value(self._decoder.decode(line))
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                text = None
            if text is not None:
                return text, []
        return self._judge(line)

    def _judge(self, line: bytes) -> _Found:
        """Judge a line that the quick parser refused by the standard library's more lenient one.

        That one takes NaN, and lone surrogates in fields that are not asked for.
        """
        try:
            # Numbers of any length; those of a conversation are for its template, which reads numbers.
            value = json.loads(line.decode(), parse_int=None if self._fields.chat else Literal)
        except UnicodeDecodeError:
            raise UnusableFieldError("invalid-utf8", "not valid UTF-8") from None
        except json.JSONDecodeError as error:
            raise UnusableFieldError(
                "invalid-json", f"not valid JSON: {error.msg.removesuffix(' at')} at column {error.colno}"
            ) from None
        except RecursionError:
            raise UnusableFieldError("invalid-json", "JSON nested too deeply") from None
        except ValueError:
            raise UnusableFieldError("invalid-json", "a number of thousands of digits") from None
        if not isinstance(value, dict):
            raise UnusableFieldError("invalid-json", f"not a JSON object but {kind_of(value)}")
        return self._find(value), self._kept(value)

    def _find(self, record: dict[str, Any]) -> Any:
        if self._fields.chat:
            values = {name: self._at(record, name) for name in self._fields.document}
            held = {name: value for name, value in values.items() if value is not _MISSING}
            if (conversation := self._fields.conversation(held)) is None:
                raise UnusableFieldError("missing-text", f"{no_conversation(self._fields)}; {fields_of(record)}")
            return conversation
        value = self._at(record, self._field)
        name = "field of ids" if self._fields.ids else "text field"
        if value is _MISSING:
            raise UnusableFieldError("missing-text", f"no {name} {self._field!r}; {fields_of(record)}")
        if self._fields.ids:
            return ids_of(value, self._field)
        if not isinstance(value, str) or isinstance(value, Literal):
            raise UnusableFieldError("missing-text", f"{name} {self._field!r} is {kind_of(value)}, not a string")
        return require_whole(value, f"{name} {self._field!r}")

    def _kept(self, record: dict[str, Any]) -> list[str | None]:
        """Return the scalars that are kept beside the text."""
        kept: list[str | None] = []
        for name in self._fields.columns:
            value = self._at(record, name)
            value = None if value is _MISSING else value
            if value is None and name == self._fields.required:
                raise UnusableFieldError("bad-field", f"no field {name!r}; {fields_of(record)}")
            plain = scalar(value, name)
            kept.append(None if plain is None else require_whole(plain, f"field {name!r}"))
        return kept

    @staticmethod
    def _at(record: dict[str, Any], name: str) -> Any:
        """Return a field by its path, or by its dotted name."""
        value: Any = record
        for part in name.split("."):
            if not isinstance(value, dict) or part not in value:
                return record.get(name, _MISSING)
            value = value[part]
        return value

    def _long(self, line: memoryview) -> _Found | None:
        """Read a text as `_text` does, without a copy of the line if nothing is wrong with it."""
        if not self._fields.ids and not self._fields.chat and not self._fields.columns and is_utf8(line):
            try:
                raw = raw_field(line, self._path) or raw_field(line, [self._field])
                if raw is not None and memoryview(raw)[0] == ord('"'):
                    text = LongString(memoryview(raw))
                    for _ in text:
                        pass
                    return text, []
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                pass
        copy = bytes(line).strip(_SPACE)
        return self._judge(copy) if copy else None


_Found = tuple[Any, list[str | None]]
"""The document of a line, and the scalars beside it."""
_MISSING = object()
