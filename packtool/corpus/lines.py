"""Split a stream, or any byte range of it, into whole lines, chunk by chunk."""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from packtool.corpus.open import Readable
from packtool.corpus.records import EXCERPT, RECORD_BYTES, RecordBatch, reject, too_large

CHUNK = 1 << 21
"""Bytes read at once; also about the size of the batches that reach the encoder."""


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


def _first_line(stream: Readable, start: int, stop: int) -> tuple[int, bytes]:
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
