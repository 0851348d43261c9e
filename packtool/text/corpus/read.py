"""Read one span of a file, whatever its format: documents, rejected records and the digest of the file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import msgspec

from packtool.text.corpus.decompress import open_stream
from packtool.text.corpus.file_bytes import FileBytes, open_raw
from packtool.text.corpus.formats import FORMATS
from packtool.text.corpus.records import RECORD_BYTES, CorpusFile, Fields, RecordBatch, Span
from packtool.text.corpus.text import read_separated
from packtool.text.faults import Fault

_READ_WELL = ("foreign-file", "bad-conversation", "nothing-trains")
"""Faults that no other format would mend, or that say it themselves."""


class SpanReader:
    """Batches of a span's documents and rejects, in order.

    A damaged file gives what comes before the damage, then one reject of record 0, which says what is lost.

    Args:
        file, span: what is read.
        limit: bytes of a record, uncompressed.

    Attributes:
        digest: xxh3-128 (hex) of the file once all batches are read, where the span is all of it and was read from
            beginning to end; else empty.

    Raises:
        DataError: the file changed since it was listed.
    """

    def __init__(self, file: CorpusFile, span: Span, fields: Fields, *, limit: int = RECORD_BYTES) -> None:
        self.digest = ""
        self._file = file
        self._format = FORMATS[file.format]
        self._span = span
        self._fields = fields
        self._limit = limit
        self._source: FileBytes | None = None

    def __iter__(self) -> Iterator[RecordBatch]:
        in_order = self._span.whole and not self._format.table
        self._source = FileBytes(self._file, hashed=in_order)
        try:
            yield from self._batches(self._source)
            if in_order:
                self.digest = self._source.digest()
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
        unsuited = self._unsuited()
        if unsuited is not None and not self._file.bytes:
            return  # an empty file has no record that lacks a field
        fault = self._file.fault or unsuited
        if fault is None:
            try:
                for batch in self._read(source):
                    self._tell(batch)
                    read += batch.progress
                    yield batch
            except Fault as found:
                fault = found
        if fault is not None:
            rest = RecordBatch(self._fields)
            rest.reject(0, fault, lost=max(self._size(source) - read, 0))
            self._tell(rest)
            yield rest

    def _tell(self, batch: RecordBatch) -> None:
        """Say of what can't be used how its file was read, and what else the file may be."""
        for place, reject in enumerate(batch.rejects):
            fault = reject.fault
            # What is wrong with a table of one format names that format itself.
            if fault.code == "missing-text" or (self._format.other and fault.code not in _READ_WELL):
                what = f"{fault.what} ({self._format.read_as})"
                told = Fault(fault.code, what, fault.remedy, alone=fault.alone)
                batch.rejects[place] = msgspec.structs.replace(reject, fault=told)

    def _unsuited(self) -> Fault | None:
        """Return why a file that is plain text has no such fields; None if it may have, or none are read."""
        fields = self._fields
        if not self._format.plain:
            return None
        if fields.chat:
            return Fault("missing-text", "plain text, which holds no conversations")
        name = fields.text if fields.ids else fields.required
        if name:
            return Fault("bad-field", f"plain text, which has no field {name!r}")
        return None

    def _size(self, source: FileBytes) -> int:
        """Count the bytes of the file that the span has."""
        division = self._format.division
        if division is not None and division.size is not None:
            return division.size(source, self._span)
        return (self._file.bytes if self._span.stop < 0 else self._span.stop) - self._span.start

    def _read(self, source: FileBytes) -> Iterator[RecordBatch]:
        file, span, format = self._file, self._span, self._format
        stream = open_stream(source, file.compression)
        fields = self._fields
        if format.plain:
            fields = msgspec.structs.replace(fields, columns=())  # it has none
        if file.separator:
            batches = read_separated(stream, fields, file.separator, self._limit)
        elif format.division is None:
            batches = format.read(stream, fields, self._limit)
        else:
            batches = format.read(stream, fields, self._limit, span.start, span.stop)
        if format.table:
            yield from batches  # which know how much of the file they are
            return
        before = 0
        for batch in batches:
            batch.progress = batch.bytes
            if format.plain:
                batch.columns = [[None] * len(batch.documents)] * len(self._fields.columns)
            if file.compression:
                batch.progress, before = stream.consumed - before, stream.consumed
            yield batch


def records_before(file: CorpusFile, span: Span) -> int:
    """Count the lines or rows of the file before the span by reading them."""
    division = FORMATS[file.format].division
    if not span.start or division is None:
        return 0
    with closing(open_raw(file.location)) as raw:
        return division.before(raw, span.start)
