"""Read one span of a file, whatever its format: documents, rejected records and the digest of the file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from packtool.corpus.decompress import DecompressedStream, open_stream
from packtool.corpus.file_bytes import FileBytes, Pages, file_digest, open_raw
from packtool.corpus.jsonl import read_jsonl
from packtool.corpus.records import (
    RECORD_BYTES,
    CorpusFile,
    Fields,
    Readable,
    RecordBatch,
    Reject,
    Span,
    UnusableFileError,
)
from packtool.corpus.tables import group_bytes, read_parquet, read_table, rows_before
from packtool.corpus.text import CHUNK, lines_before, read_file, read_lines


class SpanReader:
    """Batches of a span's documents and rejects, in order.

    A file that turns out to be damaged gives what is certain: the documents of whole members of an archive that come
    before the damage, the rows of a Parquet file likewise; then one reject of record 0, which says what is lost.

    Args:
        file, span: what is read.
        limit: bytes of a record, uncompressed.
        salvage: use what is certain of a damaged archive, for which it is decompressed twice; else the damage may
            be found after documents that are not certain.

    Attributes:
        digest: xxh3-128 (hex) of the file once all batches are read, where the span is all of it.
        pages: what was read of a file that is read more than once, else None.

    Raises:
        DataError: the file changed since it was listed.
    """

    def __init__(
        self, file: CorpusFile, span: Span, fields: Fields, *, limit: int = RECORD_BYTES, salvage: bool = True
    ) -> None:
        self.digest = ""
        self._file = file
        self._span = span
        self._fields = fields
        self._limit = limit
        self._salvage = salvage and file.compression != ""
        self._source: FileBytes | None = None
        again = not span.whole or file.format in ("parquet", "text") or self._salvage
        self.pages = Pages() if again else None

    def __iter__(self) -> Iterator[RecordBatch]:
        hashed = self._span.whole and self._file.format != "parquet"
        self._source = FileBytes(self._file, hashed=hashed, pages=self.pages)
        try:
            yield from self._batches(self._source)
            if hashed:
                self.digest = self._source.digest()
            elif self._span.whole:
                self.digest = file_digest(self._file, self.pages)
            self._source.require_unchanged()
        finally:
            self._source.close()

    def require_unchanged(self) -> None:
        """Check that an error in the file is not due to a concurrent write.

        Raises:
            DataError: it changed since it was listed.
        """
        if self._source is not None:
            self._source.require_unchanged()

    def _batches(self, source: FileBytes) -> Iterator[RecordBatch]:
        read = 0
        try:
            if self._file.problem:
                raise UnusableFileError("damaged-file", self._file.problem)
            if self._file.format in ("text", "lines", "csv", "tsv") and self._fields.chat:
                raise UnusableFileError("missing-text", f"{self._file.format}, which holds no conversations")
            if self._file.format in ("text", "lines") and (self._fields.columns or self._fields.ids):
                name = self._fields.text if self._fields.ids else self._fields.columns[0]
                raise UnusableFileError("bad-field", f"plain text, which has no field {name!r}")
            for batch in self._read(source):
                batch.progress = batch.progress or batch.bytes
                read += batch.progress
                yield batch
        except UnusableFileError as error:
            lost = error.lost or max(self._size(source) - read, 0)
            yield RecordBatch(rejects=[Reject(0, error.code, error.reason, lost=lost)])

    def _size(self, source: FileBytes) -> int:
        """Count the bytes of the file that the span has."""
        file, span = self._file, self._span
        if file.format == "parquet":
            try:
                return group_bytes(source, span.start, span.stop)
            except UnusableFileError:
                return file.bytes  # nothing can be read without its footer
        return (file.bytes if span.stop < 0 else span.stop) - span.start

    def _read(self, source: FileBytes) -> Iterator[RecordBatch]:
        file, span, limit = self._file, self._span, self._limit
        if file.format == "parquet":
            yield from read_parquet(source, self._fields, span.start, span.stop, limit)
            return
        damage, certain = _certain(file, self.pages) if self._salvage else (None, 0)
        opened = open_stream(source, file.compression)
        stream = opened if damage is None else _Beginning(opened, certain)

        def reopen() -> Any:
            return open_stream(FileBytes(file, pages=self.pages), file.compression)

        try:
            if file.format == "text":
                if damage is None:
                    yield from read_file(stream, reopen, limit)
            elif file.format in ("csv", "tsv"):
                yield from read_table(stream, self._fields, "\t" if file.format == "tsv" else ",", limit)
            else:
                if file.format == "lines":
                    batches = read_lines(stream, span.start, span.stop, limit)
                else:
                    batches = read_jsonl(stream, self._fields, span.start, span.stop, limit)
                before = 0
                for batch in batches:
                    if file.compression:
                        batch.progress, before = source.tell() - before, source.tell()
                    yield batch
        finally:
            if isinstance(opened, DecompressedStream):
                opened.release()
        if damage is not None:
            raise damage


class _Beginning:
    """The first bytes of a stream, as if it ended after them."""

    def __init__(self, stream: Readable, size: int) -> None:
        self._stream = stream
        self._left = size

    def read(self, size: int, /) -> bytes:
        data = self._stream.read(min(size, self._left))
        self._left -= len(data)
        return data

    def close(self) -> None:
        self._stream.close()


def _certain(file: CorpusFile, pages: Pages | None) -> tuple[UnusableFileError | None, int]:
    """Return the damage in an archive, and how many decompressed bytes before it are whole lines of whole members."""
    source = FileBytes(file, pages=pages)
    stream = DecompressedStream(source, file.compression)
    at = whole = 0  # bytes seen, and the end of the last whole member
    last = certain = 0  # ends of the last line, and of the last one that whole members hold
    try:
        while data := stream.read(CHUNK):
            if stream.whole_out != whole:
                whole = stream.whole_out
                newline = data.rfind(b"\n", 0, max(whole - at, 0)) + 1
                certain = at + newline if newline else last
            newline = data.rfind(b"\n") + 1
            last = at + newline if newline else last
            at += len(data)
    except UnusableFileError as error:
        source.require_unchanged()
        certain = last if stream.whole_out != whole else certain
        lost = file.bytes - stream.whole_in
        kept = f"only what lies before byte {stream.whole_in:,} is certain" if certain else "nothing is certain"
        return UnusableFileError(error.code, f"{error.reason}; {kept}, {lost:,} bytes are lost", lost), certain
    finally:
        stream.close()
    return None, 0


def records_before(file: CorpusFile, span: Span) -> int:
    """Count the lines or rows of the file before the span by reading them."""
    if not span.start:
        return 0
    raw = open_raw(file.location)
    try:
        return rows_before(raw, span.start) if file.format == "parquet" else lines_before(raw, span.start)
    finally:
        raw.close()
