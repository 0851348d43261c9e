"""JSON Lines: one object a line, the text in one of its fields.

A chunk of lines is parsed as a whole where nothing in it needs a closer look. Otherwise each of its lines is parsed by
itself, and where that fails judged by the standard library's parser, which says what is wrong.
"""

from __future__ import annotations

import codecs
import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from operator import attrgetter
from typing import Any

import msgspec
import numpy as np

from packtool.text.corpus.records import (
    RECORD_BYTES,
    Fields,
    Literal,
    Readable,
    RecordBatch,
    UnusableFieldError,
    no_conversation,
    reject,
    scalar,
    too_large,
)
from packtool.text.corpus.text import line_batches

_DEPTH = 1000
"""Calls that a parser may nest; each level of JSON takes one. From Python 3.12 on parsers have a limit of their own."""
_SMALL = 1 << 18
"""Bytes that are decoded sooner than Arrow is loaded, which checks several times as fast."""
_REJECTS = 1 << 12
"""Records of a batch that can't be used, about: each takes some hundred bytes, and a line may have one."""
_NEWLINE, _RETURN, _OPEN, _CLOSE = b"\n\r{}"
_SPACE = b" \t\r\n"
"""Whitespace in JSON."""
_BLANK = re.compile(rb"(?:[ \t\r]*+\n)++")
_SCALAR = str | int | float | bool | None
_Found = tuple[Any, list[str | None]]
"""The document of a line, and its scalars."""
_MISSING = object()


def read_jsonl(
    stream: Readable, fields: Fields, start: int = 0, stop: int = -1, limit: int = RECORD_BYTES
) -> Iterator[RecordBatch]:
    """Read the documents of the lines that begin in bytes [start, stop).

    Args:
        stream: uncompressed bytes.
        fields: to read. Dots go down into nested objects (`a.b`), else a field may have the dotted name.
        start, stop: see `line_chunks`.
        limit: bytes of a line; longer ones are rejected.
    """
    parser = _Parser(fields, limit)

    def parse(lines: bytes | bytearray) -> list[RecordBatch]:
        with same_depth():
            fast = parser.fast(lines)
            return [fast] if fast else list(parser.slow(lines))

    return line_batches(stream, start, stop, limit, parse)


class _Parser:
    def __init__(self, fields: Fields, limit: int) -> None:
        self._fields = fields
        self._limit = limit
        self._decoder: Any = None
        if (typed := _record_type(fields)) is not None:
            kind, (self._value, *self._getters) = typed
            self._decoder = msgspec.json.Decoder(kind)

    def fast(self, lines: bytes | bytearray) -> RecordBatch | None:
        """Parse all lines together; None if any of them needs a closer look.

        Where every line begins with { and ends with }, no object can go on over a newline; so an equal number of
        objects means one on each line.
        """
        if self._decoder is None or len(lines) > self._limit or lines[:1] != b"{" or not is_utf8(lines):
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
        return RecordBatch(documents, list(range(1, len(records) + 1)), columns, records=len(records))

    def slow(self, lines: bytes | bytearray) -> Iterator[RecordBatch]:
        """Parse one line after another, with the reason for each that can't be used."""
        batch = self._empty()
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
                batch.rejects.append(reject(batch.records, code, reason, line[: len(line) - _ending(line)]))
                if len(batch.rejects) == _REJECTS:
                    yield batch
                    batch = self._empty()
            else:
                if parsed is not None:
                    document, values = parsed
                    batch.documents.append(document)
                    batch.numbers.append(batch.records)
                    for column, value in zip(batch.columns, values, strict=True):
                        column.append(value)
        yield batch

    def _empty(self) -> RecordBatch:
        return RecordBatch(columns=[[] for _ in self._fields.columns])

    def _line(self, line: memoryview) -> _Found | None:
        """Parse the text of a line and the fields to keep; None for a blank line."""
        size = len(line) - _ending(line)
        if size > self._limit:
            raise UnusableFieldError("record-too-large", too_large(size, self._limit))
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

        That one takes NaN, and lone surrogates in fields that are not read.
        """
        try:
            # Numbers of any length; those of a conversation are for its template, which reads numbers.
            record = json.loads(line.decode(), parse_int=None if self._fields.chat else Literal)
        except UnicodeDecodeError:
            raise UnusableFieldError("invalid-utf8", "not valid UTF-8") from None
        except json.JSONDecodeError as error:
            what = f"not valid JSON: {error.msg.removesuffix(' at')} at column {error.colno}"
            raise UnusableFieldError("invalid-json", what) from None
        except RecursionError:
            raise UnusableFieldError("invalid-json", "JSON nested too deeply") from None
        except ValueError:
            raise UnusableFieldError("invalid-json", "a number of thousands of digits") from None
        if not isinstance(record, dict):
            raise UnusableFieldError("invalid-json", f"not a JSON object but {_kind_of(record)}")
        return self._document(record), [self._scalar(record, name) for name in self._fields.columns]

    def _document(self, record: dict[str, Any]) -> Any:
        fields = self._fields
        if fields.chat:
            values = {name: _at(record, name) for name in fields.document}
            held = {name: value for name, value in values.items() if value is not _MISSING}
            if (conversation := fields.conversation(held)) is None:
                raise UnusableFieldError("missing-text", f"{no_conversation(fields)}; {_fields_of(record)}")
            return conversation
        value = _at(record, fields.text)
        name = f"{'field of ids' if fields.ids else 'text field'} {fields.text!r}"
        if value is _MISSING:
            raise UnusableFieldError("missing-text", f"no {name}; {_fields_of(record)}")
        if fields.ids:
            return _ids_of(value, fields.text)
        if not isinstance(value, str) or isinstance(value, Literal):
            raise UnusableFieldError("missing-text", f"{name} is {_kind_of(value)}, not a string")
        return require_whole(value, name)

    def _scalar(self, record: dict[str, Any], name: str) -> str | None:
        """Return a scalar to keep with the text."""
        value = _at(record, name)
        value = None if value is _MISSING else value
        if value is None and name == self._fields.required:
            raise UnusableFieldError("bad-field", f"no field {name!r}; {_fields_of(record)}")
        kept = scalar(value, name)
        return None if kept is None else require_whole(kept, f"field {name!r}")


def _at(record: dict[str, Any], name: str) -> Any:
    """Return a field by its path, or by its dotted name."""
    value: Any = record
    for part in name.split("."):
        if not isinstance(value, dict) or part not in value:
            return record.get(name, _MISSING)
        value = value[part]
    return value


def _record_type(fields: Fields) -> tuple[Any, list[Callable[[Any], Any]]] | None:
    """Make a msgspec type for objects with these fields, and list what gets each of them, the text first.

    None where a field lies inside another one: then every record takes the slow way.
    """
    if fields.chat:
        return _conversation_type(fields)
    tree: dict[str, Any] = {}
    paths = [fields.text.split("."), *(column.split(".") for column in fields.columns)]
    for number, path in enumerate(paths):
        node = tree
        for part in path[:-1]:
            node = node.setdefault(part, {})
            if not isinstance(node, dict):
                return None
        if path[-1] in node:
            return None
        node[path[-1]] = number
    kind, _ = _struct(tree, list[int] if fields.ids else str)
    return kind, [_getter(tree, path) for path in paths]


def _conversation_type(fields: Fields) -> tuple[Any, list[Callable[[Any], Any]]] | None:
    names = (*fields.document, *fields.columns)
    if len(set(names)) < len(names) or any("." in name for name in names):
        return None
    inner = [(f"f{number}", Any if name in fields.document else _SCALAR, None) for number, name in enumerate(names)]
    kind = msgspec.defstruct("Record", inner, rename={f"f{number}": name for number, name in enumerate(names)})
    document = fields.document
    first = len(document)
    values = attrgetter(*(f"f{number}" for number in range(first)))

    def conversation(record: Any) -> dict[str, Any] | None:
        return fields.conversation(dict(zip(document, values(record), strict=True)))

    return kind, [conversation, *(attrgetter(f"f{first + number}") for number in range(len(fields.columns)))]


def _struct(tree: dict[str, Any], text: Any) -> tuple[Any, bool]:
    """Make the type of objects of one level, and tell whether the text is among their fields."""
    members: list[Any] = []
    has_text = False
    for number, node in enumerate(tree.values()):
        if isinstance(node, dict):
            inner, needed = _struct(node, text)
            members.append((f"f{number}", inner) if needed else (f"f{number}", inner | None, None))
            has_text |= needed
        elif node == 0:
            members.append((f"f{number}", text))
            has_text = True
        else:
            members.append((f"f{number}", _SCALAR, None))
    rename = {f"f{number}": name for number, name in enumerate(tree)}
    members.sort(key=len)  # what is required comes first
    return msgspec.defstruct("Record", members, rename=rename), has_text


def _getter(tree: dict[str, Any], path: Sequence[str]) -> Callable[[Any], Any]:
    names = []
    node: Any = tree
    for part in path:
        names.append(f"f{list(node).index(part)}")
        node = node[part]
    if len(names) == 1 or node == 0:
        return attrgetter(".".join(names))

    def get(record: Any) -> Any:
        for name in names:
            record = getattr(record, name)
            if record is None:
                return None
        return record

    return get


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


def require_whole(text: str, what: str) -> str:
    """Return a text that has no lone surrogates."""
    try:
        if not text.isascii():
            text.encode()
    except UnicodeEncodeError:
        raise UnusableFieldError("lone-surrogate", f"lone surrogate in {what}") from None
    return text


def _ids_of(value: Any, name: str) -> list[int]:
    """Read a list of ids."""
    if isinstance(value, list) and all(isinstance(item, Literal) and len(item) < 20 for item in value):
        return [int(item) for item in value]
    what = f"is {_kind_of(value)}" if not isinstance(value, list) else "holds something else than whole numbers"
    raise UnusableFieldError("bad-ids", f"field {name!r} {what}, not a list of token ids")


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


def _fields_of(record: dict[str, Any]) -> str:
    """List the fields of a record, for those who looked for another."""
    names = [name[:40] for name in list(record)[:12]]
    return f"there are {', '.join(names)}{' and others' * (len(record) > 12)}" if names else "the object is empty"


def _kind_of(value: Any) -> str:
    numbers = dict.fromkeys((int, float, Literal), "a number")
    others = {type(None): "null", bool: "true or false", str: "a string", list: "an array", dict: "an object"}
    return {**numbers, **others}[type(value)]
