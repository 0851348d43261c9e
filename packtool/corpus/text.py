"""Plain text: streams, or byte ranges of them, cut to whole lines; and documents of a line or a whole file each."""

from __future__ import annotations

import codecs
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from packtool.corpus.records import EXCERPT, RECORD_BYTES, LongText, Readable, RecordBatch, reject, too_large

CHUNK = 1 << 21
"""Bytes read at once; also about the size of the batches that reach the encoder."""
LONG = 1 << 23
"""Longer texts are never held as one `str`, which can take four bytes for each character."""


class LongLine(NamedTuple):
    """A line above the limit: its first bytes, its length, and the length of its line end."""

    excerpt: bytes
    size: int
    ending: int


def line_batches(
    stream: Readable, start: int, stop: int, limit: int, parse: Callable[[bytes | bytearray], Sequence[RecordBatch]]
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
            long = reject(1, "record-too-large", too_large(size, limit), chunk.excerpt, size)
            yield RecordBatch(rejects=[long], records=1, bytes=chunk.size)
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
    newline. Memory is that of the longest line, once. Lines that are much longer than `limit` are not held at all;
    those around it may come either way.

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


def read_lines(stream: Readable, start: int = 0, stop: int = -1, limit: int = RECORD_BYTES) -> Iterator[RecordBatch]:
    """Read one document from each line that begins in bytes [start, stop), without its line end. Blank lines are no
    documents; lines of more than `limit` bytes are rejected."""
    return line_batches(stream, start, stop, limit, lambda lines: [_documents(bytes(lines).split(b"\n"), limit)])


def _documents(lines: list[bytes], limit: int) -> RecordBatch:
    if not lines[-1]:
        lines.pop()
    batch = RecordBatch(records=len(lines))
    documents, numbers = batch.documents, batch.numbers
    for number, ended in enumerate(lines, 1):
        line = ended.removesuffix(b"\r")
        if not line.strip():
            continue
        if len(line) > limit:
            batch.rejects.append(reject(number, "record-too-large", too_large(len(line), limit), line))
            continue
        try:
            documents.append(line.decode())
            numbers.append(number)
        except UnicodeDecodeError:
            batch.rejects.append(reject(number, "invalid-utf8", "not valid UTF-8", line))
    return batch


class LongStream:
    """A long stream of UTF-8 as one document, decoded piece by piece.

    Args:
        reopen: gives the stream again, from its beginning.
        encoding: utf-8, or utf-8-sig to leave out a byte order mark.
    """

    def __init__(self, reopen: Callable[[], Readable], encoding: str) -> None:
        self._reopen = reopen
        self._encoding = encoding

    def __iter__(self) -> Iterator[str]:
        decoder = codecs.getincrementaldecoder(self._encoding)()
        stream = self._reopen()
        try:
            while data := stream.read(CHUNK):
                yield decoder.decode(data)
            yield decoder.decode(b"", final=True)
        finally:
            stream.close()


def checked(document: LongText) -> LongText:
    """Return the document once all of it was decoded, so that errors show before any of it is used."""
    for _ in document:
        pass
    return document


def read_file(stream: Readable, reopen: Callable[[], Readable], limit: int = RECORD_BYTES) -> Iterator[RecordBatch]:
    """Read the whole file as one document.

    Args:
        reopen: gives the stream again, from its beginning, each time it is called.
        limit: bytes of the file, decompressed; a larger one is rejected.
    """
    parts, size = [], 0
    while size <= LONG and (data := stream.read(CHUNK)):
        parts.append(data)
        size += len(data)
    head = b"".join(parts) if size <= LONG else b"".join(parts)[:EXCERPT]
    parts.clear()
    while size <= limit and (data := stream.read(CHUNK)):
        size += len(data)

    def rejected(code: str, what: str) -> RecordBatch:
        return RecordBatch(rejects=[reject(0, code, what, head, size)], records=1, bytes=size)

    if size > limit:
        yield rejected("record-too-large", f"a file of more than {limit:,} bytes, the limit of a record")
        return
    try:
        text = head.removeprefix(BOM_UTF8).decode() if size <= LONG else checked(LongStream(reopen, "utf-8-sig"))
    except UnicodeDecodeError:
        yield rejected("invalid-utf8", "not valid UTF-8")
    else:
        yield RecordBatch([text], [1], records=1, bytes=size)
