"""JSON over several lines: an array of records, or one object after another, as `jq .` writes them."""

from __future__ import annotations

import json
import re
from codecs import BOM_UTF8
from collections.abc import Iterator
from itertools import islice

from packtool.text.corpus.jsonl import RecordParser, same_depth
from packtool.text.corpus.records import RECORD_BYTES, Fields, Readable, RecordBatch, first_object
from packtool.text.corpus.text import CHUNK
from packtool.text.corpus.text_format import TextFormat
from packtool.text.faults import Fault

_RECORDS = 1 << 10
"""Records of a batch, at most."""
_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[\[{]|[\]}]|"', re.DOTALL)
"""A whole string, an opening or closing bracket, or the beginning of a string that goes on behind what was read."""
_SCALAR = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[^\s,\[\]{}:"]+', re.DOTALL)
"""A string, a number or a word."""
_OVER_LINES = re.compile(r"\[|\{(?:[^\n]*[{\[,])?[ \t\r]*\n\s*[\"}\]]")
"""An array, or an object whose first line ends with a comma or bracket, and whose second begins with a name, or ends
it."""
_SPACE = re.compile(rb"[ \t\r\n]*")


def read_json(stream: Readable, fields: Fields, limit: int) -> Iterator[RecordBatch]:
    """Read the documents of the records of a file, numbered from 1.

    Args:
        stream: uncompressed bytes.
        limit: bytes of a record; longer ones are rejected.

    Raises:
        Fault: it ends too early, or something else than records stands between them.
    """
    parser = RecordParser(fields, limit)
    values = _Values(stream, limit)
    found = iter(values)
    damage: Fault | None = None
    more = True
    while more:
        held: list[tuple[bytes, int]] = []
        try:
            for value in islice(found, _RECORDS):
                held.append((value, 1))
        except Fault as error:
            damage = error  # what comes before it is given first
        with same_depth():
            batches = list(parser.each(held))
        batches[-1].bytes = values.taken()
        yield from batches
        if damage is not None:
            raise damage
        more = len(held) == _RECORDS


def over_lines(head: bytes) -> bool:
    """Return whether JSON with these first bytes is an array, or objects over several lines, not an object a line.

    >>> over_lines(b'[{"text": "a"}]'), over_lines(b'{\\n "text": "a"\\n}'), over_lines(b'{"text": "a"}')
    (True, True, False)
    """
    text = head.decode("utf-8", "replace").removeprefix("\ufeff").lstrip()
    try:
        value, end = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):  # it is longer than what was read, or damaged
        return _OVER_LINES.match(text) is not None
    return isinstance(value, list) or (isinstance(value, dict) and "\n" in text[:end])


class _Values:
    """The values of a file of JSON: the elements of its arrays, or values with nothing but space between.

    Memory is that of the longest value, twice.

    Args:
        limit: bytes of a value.
    """

    def __init__(self, stream: Readable, limit: int) -> None:
        self._stream = stream
        self._limit = limit
        self._data = b""  # what was read and not used, from `self._at` on
        self._at = 0
        self._ended = False
        self._bytes = 0
        self._number = 0
        self._arrays = False  # one was read

    def __iter__(self) -> Iterator[bytes]:
        inside = False  # an array
        while (mark := self._next()) is not None:
            if not inside and mark == b"[":
                if self._arrays:
                    what = "several arrays: each may be a record of its own, such as a conversation"
                    raise Fault("invalid-json", what, 'write objects, such as {"messages": […]}, one a line')
                self._arrays = inside = True
                self._at += 1
                if self._next() == b"]":
                    inside = False
                    self._at += 1
                continue
            yield self._value()
            if not inside:
                if self._next() == b",":
                    what = "objects with commas between, and no array around them"
                    raise Fault("invalid-json", what, "put [ before the first and ] behind the last")
                continue
            mark = self._next()
            if mark not in (b",", b"]"):
                raise self._damaged("no comma follows" if mark else "the array does not end")
            inside = mark == b","
            self._at += 1
        if inside:
            raise self._damaged("the array does not end")

    def taken(self) -> int:
        """Return the bytes that were read since this was asked last."""
        count, self._bytes = self._bytes, 0
        return count

    def _more(self) -> bool:
        """Read on, as much again as is held: a long value is searched for its end a few times only."""
        self._data = self._data[self._at :]
        self._at = 0
        data = self._stream.read(max(CHUNK, len(self._data)))
        self._bytes += len(data)
        self._data += data
        self._ended = not data
        return bool(data)

    def _next(self) -> bytes | None:
        """Pass over space; return the byte that follows, or None at the end."""
        while True:
            self._at = _SPACE.match(self._data, self._at).end()  # type: ignore[union-attr]
            if self._at < len(self._data):
                return self._data[self._at : self._at + 1]
            if not self._more():
                return None
            if not self._number and self._data.startswith(BOM_UTF8):
                self._at = len(BOM_UTF8)

    def _value(self) -> bytes:
        """Return the bytes of the value that begins here."""
        self._number += 1
        while (end := self._end()) is None:
            if len(self._data) - self._at > self._limit:
                raise Fault("record-too-large", f"record {self._number} has more than {self._limit:,} bytes")
            if not self._more() and (end := self._end()) is None:
                raise self._damaged("it does not end")
        value = self._data[self._at : end]
        self._at = end
        return value

    def _end(self) -> int | None:
        """Return where the value that begins here ends; None if that is not known yet."""
        if self._data[self._at] in b"{[":
            depth = 0
            for match in _TOKEN.finditer(self._data, self._at):
                token = match[0]
                if token in b"[{":
                    depth += 1
                elif token in b"]}":
                    depth -= 1
                    if not depth:
                        return match.end()
                elif token == b'"':  # the rest of the string was not read yet
                    return None
            return None
        scalar = _SCALAR.match(self._data, self._at)
        if scalar is None:
            if self._data[: self._at].rstrip().endswith(b",") and self._data.startswith(b"]", self._at):
                raise self._damaged("there is only a comma before the array ends")
            raise self._damaged("it is not JSON")
        return scalar.end() if scalar.end() < len(self._data) or self._ended else None

    def _damaged(self, what: str) -> Fault:
        return Fault("damaged-file", f"not whole JSON: at record {self._number}, {what}; what follows is lost")


FORMAT = TextFormat(name="json", read=read_json, first=lambda stream: first_object(_Values(stream, RECORD_BYTES)))
