"""Plain text: one document a file, or one a line."""

from __future__ import annotations

import codecs
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator

from packtool.corpus.lines import CHUNK, line_batches
from packtool.corpus.open import Readable
from packtool.corpus.records import EXCERPT, RECORD_BYTES, RecordBatch, reject, too_large

LONG = 1 << 23


def read_lines(stream: Readable, start: int = 0, stop: int = -1, limit: int = RECORD_BYTES) -> Iterator[RecordBatch]:
    """Read one document from each line that begins in bytes [start, stop), without its line end. Blank lines are no
    documents; lines of more than `limit` bytes are rejected."""
    return line_batches(stream, start, stop, limit, lambda lines: [_documents(bytes(lines).split(b"\n"), limit)])


def _documents(lines: list[bytes], limit: int) -> RecordBatch:
    if not lines[-1]:
        lines.pop()
    numbers: list[int] = []
    batch = RecordBatch(numbers=numbers, records=len(lines))
    for number, ended in enumerate(lines, 1):
        line = ended.removesuffix(b"\r")
        if not line.strip():
            continue
        if len(line) > limit:
            batch.rejects.append(reject(number, "record-too-large", too_large(len(line), limit), line))
            continue
        try:
            batch.documents.append(line.decode())
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


def read_file(stream: Readable, reopen: Callable[[], Readable], limit: int = RECORD_BYTES) -> Iterator[RecordBatch]:
    """Read the whole file as one document.

    Args:
        stream: the file.
        reopen: gives the stream again, from its beginning, each time it is called.
        limit: bytes of the file, decompressed; a larger one is rejected.
    """
    parts, size = [], 0
    while size <= LONG and (data := stream.read(CHUNK)):
        parts.append(data)
        size += len(data)
    if size <= min(LONG, limit):
        yield _one(b"".join(parts))
        return
    excerpt = b"".join(parts)[:EXCERPT]
    parts.clear()
    while size <= limit and (data := stream.read(CHUNK)):
        size += len(data)
    if size > limit:
        what = f"a file of more than {limit:,} bytes, the limit of a record"
        yield RecordBatch(rejects=[reject(0, "record-too-large", what, excerpt, size)], records=1, bytes=size)
        return
    document = LongStream(reopen, "utf-8-sig")
    try:
        for _ in document:
            pass
    except UnicodeDecodeError:
        yield RecordBatch(rejects=[reject(0, "invalid-utf8", "not valid UTF-8", excerpt, size)], records=1, bytes=size)
    else:
        yield RecordBatch([document], [1], records=1, bytes=size)


def _one(raw: bytes) -> RecordBatch:
    try:
        return RecordBatch([raw.removeprefix(BOM_UTF8).decode()], [1], records=1, bytes=len(raw))
    except UnicodeDecodeError:
        return RecordBatch(rejects=[reject(0, "invalid-utf8", "not valid UTF-8", raw)], records=1, bytes=len(raw))
