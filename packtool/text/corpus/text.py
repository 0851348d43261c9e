"""Plain text: streams, or byte ranges of them, cut to whole lines; and documents of a line or a whole file each."""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

from packtool.text.corpus.decompress import read_whole
from packtool.text.corpus.file_bytes import read_up_to
from packtool.text.corpus.records import (
    EXCERPT,
    RECORD_BYTES,
    CorpusFile,
    Fields,
    MadeDocument,
    Readable,
    RecordBatch,
    require_size,
    text_in,
    too_large,
)
from packtool.text.corpus.text_format import Division
from packtool.text.faults import Fault

CHUNK = 1 << 21
"""Bytes read at once; also about the size of the batches that reach the encoder."""
ZEROS = bytes(16)
"""Fewer may stand in a text by mistake."""
_BLANK = " \t\n\r\v\f"
"""Whitespace of ASCII: a line with any other is a document."""


class LongLine(NamedTuple):
    """A line above the limit: its first bytes, its length, and the length of its line end."""

    excerpt: bytes
    size: int
    ending: int


def line_batches(
    stream: Readable,
    fields: Fields,
    start: int,
    stop: int,
    limit: int,
    parse: Callable[[bytes | bytearray], Sequence[RecordBatch]],
) -> Iterator[RecordBatch]:
    """Read the lines that begin in [start, stop). A line above the limit is rejected.

    Args:
        stream, start, stop, limit: see `line_chunks`.
        parse: (whole lines, without the byte order mark of the file) to the records in them: one batch or more.
    """
    first = start == 0
    for chunk in line_chunks(stream, start, stop, limit):
        if isinstance(chunk, LongLine):
            size = chunk.size - chunk.ending
            batch = RecordBatch(fields, records=1, bytes=chunk.size)
            batch.reject(1, too_large(size, limit), chunk.excerpt, size=size)
            yield batch
        else:
            size = len(chunk)
            batches = parse(_unmarked(chunk) if first else chunk)
            batches[-1].bytes = size
            yield from batches
        first = False


def line_chunks(
    stream: Readable, start: int = 0, stop: int = -1, limit: int = RECORD_BYTES
) -> Iterator[bytes | bytearray | LongLine]:
    """Yield chunks of whole lines: every line that begins in [start, stop), with its newline.

    A line longer than `CHUNK` comes in a chunk of about its own size. The last line of the stream may lack its
    newline. Memory is that of the longest line, once. Lines that are much longer than `limit` are not held at all; a
    line that is only a little longer may come whole or as a `LongLine`.

    Args:
        stream: positioned at its beginning; seekable unless start is 0.
        start: first byte; a line that began before it belongs to the range before.
        stop: byte after the last; -1 for the end of the stream.
        limit: bytes of a line.
    """
    at, data = _first_line(stream, start, stop) if start else (0, stream.read(CHUNK))
    pending: bytes | bytearray = b""  # begins at offset `at`, holds no newline
    while data and (stop < 0 or at < stop):
        searched = len(pending)
        pending = _joined(pending, data)
        if 0 <= stop <= at + len(pending):
            end = pending.find(b"\n", max(stop - 1 - at, searched))
            if end >= 0:
                yield _cut(pending, end + 1)
                return
        cut = pending.rfind(b"\n", searched) + 1
        if cut:
            rest = bytes(pending[cut:])
            yield _cut(pending, cut)
            at += cut
            pending = rest
        if len(pending) > limit + len(b"\r"):
            line, data = _pass_over(stream, pending)
            at += line.size
            pending = b""
            yield line
        else:
            data = stream.read(CHUNK)
    if pending:
        yield pending


def _pass_over(stream: Readable, begun: bytes | bytearray) -> tuple[LongLine, bytes]:
    """Skip the rest of a line without holding it; return the bytes read beyond it."""
    size, last = len(begun), begun[-1:]
    excerpt = bytes(begun[:EXCERPT])
    while data := stream.read(CHUNK):
        newline = data.find(b"\n") + 1
        if newline:
            ending = 2 if (last + data[:newline])[-2:] == b"\r\n" else 1
            return LongLine(excerpt, size + newline, ending), data[newline:] or stream.read(CHUNK)
        size, last = size + len(data), data[-1:]
    return LongLine(excerpt, size, 0), b""


def _first_line(stream: Any, start: int, stop: int) -> tuple[int, bytes]:
    """Find the first offset from `start` at which a line begins; return it, and the bytes read from there."""
    at = start - 1
    stream.seek(at)
    while data := stream.read(CHUNK):
        newline = data.find(b"\n") + 1
        if newline:
            return at + newline, data[newline:] or stream.read(CHUNK)
        at += len(data)
        if 0 <= stop <= at:
            break
    return at, b""


def _joined(pending: bytes | bytearray, data: bytes) -> bytes | bytearray:
    if not pending:
        return data
    if len(pending) < CHUNK:
        return pending + data
    grown = pending if isinstance(pending, bytearray) else bytearray(pending)
    grown += data
    return grown


def _cut(pending: bytes | bytearray, size: int) -> bytes | bytearray:
    """Cut off the first bytes, in place where they may be many: there must be no second copy of a very long line."""
    if isinstance(pending, bytes):
        return pending[:size]
    del pending[size:]
    return pending


def _unmarked(chunk: bytes | bytearray) -> bytes | bytearray:
    """Leave out a byte order mark, in place like `_cut`."""
    if isinstance(chunk, bytes):
        return chunk.removeprefix(BOM_UTF8)
    if chunk.startswith(BOM_UTF8):
        del chunk[: len(BOM_UTF8)]
    return chunk


def lines_before(stream: Readable, start: int) -> int:
    """Count the lines that begin before byte `start`, to number the lines of a range as those of the file.

    >>> import io
    >>> [lines_before(io.BytesIO(b"a\\nbc\\n"), start) for start in range(6)]
    [0, 1, 1, 2, 2, 2]
    """
    if start == 0:
        return 0
    count, left = 1, start - 1
    while left > 0 and (data := stream.read(min(CHUNK, left))):
        count += data.count(b"\n")
        left -= len(data)
    return count


def _starts(file: CorpusFile, size: int) -> list[int]:
    """Return the first byte of each of as many equal ranges as have about `size` bytes."""
    count = -(-file.bytes // size)
    starts = []
    for part in range(count):
        starts.append(file.bytes * part // count)
    return starts


def _place(file: CorpusFile, offset: int, size: int) -> tuple[int, int]:
    return offset, min(offset + size, file.bytes)


BY_LINES = Division(starts=_starts, place=_place, before=lines_before)
"""Lines are divided into equal ranges of bytes: a line belongs to the range in which it begins."""


def read_lines(
    stream: Readable, fields: Fields, limit: int = RECORD_BYTES, start: int = 0, stop: int = -1
) -> Iterator[RecordBatch]:
    """Read one document from each line that begins in bytes [start, stop), without its line end. Blank lines are no
    documents; lines of more than `limit` bytes are rejected."""
    one = partial(_line, limit)

    def parse(lines: bytes | bytearray) -> list[RecordBatch]:
        held = bytes(lines).removesuffix(b"\n")
        batch = RecordBatch(fields, records=held.count(b"\n") + 1)
        if len(held) <= limit:  # so no line is too long, and all can be decoded at once, which is faster
            with suppress(Fault):  # one by one, to find which it is
                for number, text in enumerate(_decoded(held).split("\n"), 1):
                    if text.strip(_BLANK):
                        batch.documents.append(text.removesuffix("\r"))
                        batch.numbers.append(number)
                return [batch]
        for number, line in enumerate(held.split(b"\n"), 1):
            batch.add(number, one, line.removesuffix(b"\r"))
        return [batch]

    return line_batches(stream, fields, start, stop, limit, parse)


def _line(limit: int, line: bytes) -> MadeDocument | None:
    """Return the document of a line; None for a blank one."""
    if not line.strip():
        return None
    require_size(len(line), limit)
    return _decoded(line), []


def _decoded(data: bytes) -> str:
    """Return bytes as text."""
    if ZEROS in data:
        raise Fault("damaged-file", "a run of zero bytes, as in a file that was not written to its end")
    return text_in(data)


def read_separated(
    stream: Readable, fields: Fields, separator: str, limit: int = RECORD_BYTES
) -> Iterator[RecordBatch]:
    """Read the documents between separators, numbered by the lines where they begin.

    A document of whitespace alone comes as an empty document; whitespace behind the last separator is no document.
    Memory is that of the longest document, twice.

    Args:
        stream: positioned at its beginning.
        separator: between documents. Its newlines also match a carriage return with a newline. If it has other
            characters, too, the beginning and the end of the file count as newlines.
        limit: bytes of a document; longer ones are rejected.
    """
    cutter = _Cutter(fields, separator, limit)
    data = read_up_to(stream, CHUNK)
    yield cutter.cut(data.removeprefix(BOM_UTF8), first=True)
    while data:
        data = read_up_to(stream, CHUNK)
        yield cutter.cut(data)
    yield cutter.last()


class _Cutter:
    """Cuts a text into the documents between separators, as it is read."""

    def __init__(self, fields: Fields, separator: str, limit: int) -> None:
        self._fields = fields
        self._limit = limit
        self._longest = len(separator.encode()) + separator.count("\n")
        self._between = re.compile(_pattern(separator))
        self._first = self._last = re.compile(b"(?!)")
        if separator.strip("\n"):
            if separator.startswith("\n"):
                self._first = re.compile(_pattern(separator.lstrip("\n")))
            if separator.endswith("\n"):
                self._last = re.compile(_pattern(separator.rstrip("\n")) + rb"\Z")
        self._held = b""
        self._too_long = False  # what is held is the end of a document that was rejected

    def cut(self, data: bytes, *, first: bool = False) -> RecordBatch:
        """Return the documents that end in these bytes.

        Args:
            first: they begin the file.
        """
        batch = RecordBatch(self._fields, bytes=len(data))
        searched = max(len(self._held) - self._longest, 0)
        self._held += data
        begin = 0
        line = self._first.match(self._held) if first else None
        if line:
            begin = searched = line.end()
            batch.records += line[0].count(b"\n")
        for match in self._between.finditer(self._held, searched):
            if match.start() < begin:
                continue
            self._add(batch, self._held[begin : match.start()])
            batch.records += self._held.count(b"\n", begin, match.end())
            begin = match.end()
        self._held = self._held[begin:]
        if len(self._held) > self._limit + self._longest:
            self._pass_over(batch)
        return batch

    def last(self) -> RecordBatch:
        """Return the document behind the last separator, if there is one."""
        batch = RecordBatch(self._fields)
        rest = self._held
        line = self._last.search(rest)
        if line:
            rest = rest[: line.start()]
        if rest.strip():
            self._add(batch, rest)
        batch.records += self._held.count(b"\n") + (not self._held.endswith(b"\n") and self._held != b"")
        return batch

    def _add(self, batch: RecordBatch, piece: bytes) -> None:
        """Add a document to a batch, which ends with the line before it."""
        if self._too_long:
            self._too_long = False
            return
        batch.add(batch.records + 1, self._document, piece)

    def _document(self, piece: bytes) -> MadeDocument:
        """Return the document between two separators."""
        require_size(len(piece), self._limit)
        return _decoded(piece) if piece.strip() else "", []

    def _pass_over(self, batch: RecordBatch) -> None:
        """Reject the document that is held, and hold only so much of it that no separator is missed."""
        if not self._too_long:
            what = f"a document of more than {self._limit:,} bytes"
            batch.reject(batch.records + 1, Fault("record-too-large", what), self._held)
        self._too_long = True
        batch.records += self._held.count(b"\n", 0, -self._longest)
        self._held = self._held[-self._longest :]


def _pattern(separator: str) -> bytes:
    return re.escape(separator.encode()).replace(b"\\\n", rb"\r?\n")


def read_file(stream: Readable, fields: Fields, _limit: int = RECORD_BYTES) -> Iterator[RecordBatch]:
    """Read the whole file as one document, however long it is."""
    data = read_whole(stream)
    assert data is not None  # as it is with a limit
    batch = RecordBatch(fields, records=1, bytes=len(data))
    try:
        batch.take([_decoded(data.removeprefix(BOM_UTF8))], [])
    except Fault as fault:
        batch.reject(0, fault, data)  # the file itself is the record
    yield batch
