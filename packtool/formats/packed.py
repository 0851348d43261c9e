"""The packed dataset: rows of tokens in shards, and which segment of which document lies where.

A shard is `tokens-NNNNN.npy` (rows × sequence_length), `segments-NNNNN.npy` and `segment_offsets-NNNNN.npy`
(rows + 1), and `atoms-NNNNN.npy` where atoms span a varying number of rows: the rows of this shard at which an atom
begins. `lengths.npy`, next to the manifest, has every document's length, EOS included, so that the dataset alone can
account for every token. Columns that were kept of the documents lie there, too (`kept_columns.py`).
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from packtool.errors import DataError
from packtool.formats import manifest as manifests
from packtool.formats.bucket_shards import BucketShards, StoredColumn
from packtool.formats.files import WRITE_BYTES, NpyWriter, write_array
from packtool.formats.kept_columns import KeptColumns
from packtool.formats.names import LOSS, OFFSET, SEGMENT, shard_file
from packtool.formats.schema import Bucket, PackedManifest, PackedShard, listed_files
from packtool.formats.segment_table import SegmentTables, no_segments, to_table
from packtool.formats.unchanged import Unchanged
from packtool.places.npy import FileEntry
from packtool.places.place import AGAIN, MappedFile, Place
from packtool.places.typed import Typed, place_of
from packtool.planning.document_loss import DocumentLoss
from packtool.planning.plan import BATCH, I64, Ints, Segments, offsets_of

_SPOOL_BYTES = 1 << 25


class Gather(Protocol):
    """Brings the tokens of rows from token stores."""

    def __call__(self, segments: Segments) -> npt.NDArray[Any]:
        """Gather the tokens of all segments, in order, into one array."""

    def files(self) -> Iterator[MappedFile]:
        """Yield every file that tokens are gathered from."""

    def release(self) -> None:
        """Release the memory that maps rows already read."""

    @property
    def loss(self) -> Gather | None:
        """The same for which tokens train; None where all of them do."""


@dataclass(eq=False)
class GatheredColumn:
    """A column of rows that is gathered from token stores, by their segments."""

    segments: SegmentTables  # segments of the rows
    shards: BucketShards  # shards of the rows
    dtype: np.dtype[Any]  # type of the values
    gather: Gather | None = None  # brings the values; None if they are not to be read

    def between(self, first: int, last: int) -> npt.NDArray[Any]:
        """Return rows ``first:last``, (rows, sequence_length)."""
        return self.gathered(self.segments.between(first, last))

    def take(self, rows: I64) -> npt.NDArray[Any]:
        """Return these rows, (rows, sequence_length)."""
        return self.gathered(self.segments.take(rows))

    def gathered(self, segments: Segments, unit: int | None = None) -> npt.NDArray[Any]:
        """Gather the values of segments that fill whole rows, (rows, sequence_length), or units of another length."""
        if self.gather is None:
            what = "its rows have to be gathered from token stores, which were not opened"
            raise DataError("store-missing", what, remedy="open it with its stores", where=str(self.shards.place))
        return self.gather(segments).reshape(-1, unit or self.shards.entry.sequence_length)

    def release(self) -> None:
        """Give back the memory that maps what was gathered so far."""
        if self.gather is not None:
            self.gather.release()


RowColumn: TypeAlias = "StoredColumn | GatheredColumn"


@dataclass(frozen=True, eq=False)
class PackedBucket:
    """Rows of one length, in shards."""

    shards: BucketShards
    segments: SegmentTables
    tokens: RowColumn
    loss: RowColumn | None  # which tokens train; None where all of them do

    @property
    def rows(self) -> int:
        return self.shards.entry.rows

    @property
    def sequence_length(self) -> int:
        return self.shards.entry.sequence_length

    @property
    def columns(self) -> list[RowColumn]:
        """The tokens, and their loss if there is one."""
        return list(filter(None, (self.tokens, self.loss)))

    def release(self) -> None:
        """Give back the memory that maps the tokens and segments read so far."""
        for column in self.columns:
            column.release()
        self.segments.release()

    def files(self) -> Iterator[MappedFile]:
        """Yield every file of the bucket."""
        place = self.shards.place
        for number, entry in enumerate(self.shards.entry.shards):
            for file, column in ((entry.tokens, self.tokens), (entry.loss, self.loss)):
                if file is not None and isinstance(column, StoredColumn):
                    yield MappedFile(place, file, column.arrays[number])
            if entry.segments is not None and entry.segment_offsets is not None:
                table, offsets = self.segments.tables()[number]
                yield MappedFile(place, entry.segments, table)
                yield MappedFile(place, entry.segment_offsets, offsets)
            if entry.atoms is not None:
                yield MappedFile.opened(place, entry.atoms, OFFSET)


class PackedDataset:
    """Read access to a packed dataset.

    Args:
        place: where it lies.
        keep: as in `BucketShards`. Where it is given, opening looks at the sizes of files only, and segments are not
            checked against the lengths of documents.
        unchanged: as in `BucketShards`.

    Raises:
        DataError: missing, unfinished or damaged.
        UsageError: a token store rather than a packed dataset.
    """

    def __init__(self, place: Typed, keep: int | None = None, unchanged: Unchanged | None = None) -> None:
        self.place = place_of(place)
        manifest = manifests.read_as(self.place, PackedManifest)
        self.manifest = manifest
        self.dtype = np.dtype(manifest.dtype)
        self.columns = KeptColumns(self.place, manifest.columns, unchanged)
        self._lengths: Ints | None = None
        self.document_loss: DocumentLoss | None = None
        """Which tokens of documents train, where rows are gathered from stores that say so."""
        if manifest.lengths is not None and keep is None:
            self._lengths = self.place.array(manifest.lengths, "<u4")
        self._gather: Gather | None = None
        self.buckets: list[PackedBucket] = []
        for entry in manifest.buckets:
            shards = BucketShards(self.place.below(entry.directory), entry, keep, unchanged)
            self.buckets.append(self._bucket(shards))
        if keep is not None:
            kept = ("tokens", "loss", "segments", "segment_offsets", "column", "categories")
            files = listed_files(manifest)
            self.place.require([file for file in files if PurePosixPath(file.name).name.partition("-")[0] in kept])

    def _bucket(self, shards: BucketShards) -> PackedBucket:
        segments = SegmentTables(shards, self._lengths)
        tokens: RowColumn
        loss: RowColumn | None = None
        # Only the manifest knows whether rows are gathered, since a bucket may be empty.
        if self.manifest.index_only:
            tokens = GatheredColumn(segments, shards, self.dtype)
            if self.manifest.has_loss:
                loss = GatheredColumn(segments, shards, LOSS)
        else:
            tokens = StoredColumn(shards, "tokens", self.dtype)
            if self.manifest.has_loss:
                loss = StoredColumn(shards, "loss", LOSS)
        return PackedBucket(shards, segments, tokens, loss)

    @property
    def has_segments(self) -> bool:
        return self.manifest.lengths is not None

    def lengths(self) -> Ints:
        """Return the length of each document of the corpus in tokens, EOS included."""
        if self.manifest.lengths is None:
            raise no_segments(self.place)
        if self._lengths is None:
            self._lengths = self.place.array(self.manifest.lengths, "<u4")
        return self._lengths

    def gather_by(self, gather: Gather) -> None:
        """Gather the rows of a dataset without tokens by this, from stores that were opened for it."""
        self._gather = gather
        for bucket in self.buckets:
            for column, brings in ((bucket.tokens, gather), (bucket.loss, gather.loss)):
                if isinstance(column, GatheredColumn):
                    column.gather = brings

    def files(self) -> Iterator[MappedFile]:
        """Yield every array that rows are made of, except fetched arrays, which are checked on arrival."""
        if self.place.sound:
            return
        for bucket in self.buckets:
            yield from bucket.files()
        if self._gather is not None:
            yield from self._gather.files()
        if self.manifest.lengths is not None:
            yield MappedFile(self.place, self.manifest.lengths, np.asarray(self.lengths()))
        choice = self.manifest.choice
        if choice is not None and choice.documents is not None:
            yield MappedFile.opened(self.place, choice.documents, OFFSET)
        yield from self.columns.files()

    def chosen(self) -> list[I64] | None:
        """Return, for each store, the numbers of the stored documents that were packed; None if all are packed once.

        Raises:
            DataError: a number is not that of a document of the store.
        """
        choice = self.manifest.choice
        if choice is None or choice.documents is None:
            return None
        numbers = self.place.array(choice.documents, OFFSET)
        parts = np.split(numbers, np.cumsum(self.manifest.store_documents)[:-1])
        for part, source in zip(parts, choice.sources, strict=True):
            if len(part) and not (part.min() >= 0 and part.max() < source.documents):
                what = "names documents that the stores do not have"
                where = self.place.where(choice.documents.name)
                raise DataError("bad-choice", what, remedy="make the dataset again", where=where)
        return parts

    def batches(self) -> npt.NDArray[Any] | None:
        """Return the batches of the ``bucket`` shuffle, an array of `BATCH`; None for a dataset without batches."""
        manifest = self.manifest
        return None if manifest.batches is None else _read_batches(self.place, manifest.batches, manifest.buckets)


def _read_batches(place: Place, entry: FileEntry, buckets: Sequence[Bucket]) -> npt.NDArray[Any]:
    """Read the batches of the ``bucket`` shuffle, of `BATCH`.

    Raises:
        DataError: naming the first batch with rows that are not there, or that another one has.
    """
    table = place.array(entry, BATCH)[:]
    rows = {bucket.sequence_length: bucket.rows for bucket in buckets}
    most = np.array([rows.get(length, -1) for length in table["bucket"].tolist()], np.int64)
    first, count = table["first_row"], table["rows"]
    good = (first >= 0) & (count > 0) & (first <= most) & (count <= most - np.clip(first, 0, None))
    if good.all():
        order = np.lexsort((first, table["bucket"]))
        ordered = table[order]
        twice = (ordered["bucket"][1:] == ordered["bucket"][:-1]) & (
            ordered["first_row"][1:] < ordered["first_row"][:-1] + ordered["rows"][:-1]
        )
        good[order[1:]] = ~twice
    if not good.all():
        what = f"batch {int(np.flatnonzero(~good)[0])} names rows that are not there, or that another batch has"
        raise DataError("bad-order", what, remedy=AGAIN, where=place.where(entry.name))
    return table


class PackedShardWriter:
    """Writes one shard of rows, batch by batch.

    Args:
        directory: of the bucket.
        dtype: of the tokens, or of records of `token` and `loss`.
        rows, sequence_length: shape of the shard.
        with_segments: also write the segment table.
        with_tokens: also write the tokens, and their loss.
    """

    def __init__(
        self,
        directory: Path,
        number: int,
        *,
        dtype: np.dtype[Any],
        rows: int,
        sequence_length: int,
        with_segments: bool = True,
        with_tokens: bool = True,
    ) -> None:
        self._directory = directory
        self._number = number
        self._columns: dict[str, NpyWriter] = {}
        if with_tokens:
            columns = dtype.fields or {"token": (dtype,)}
            for kind, name in (("tokens", "token"), ("loss", "loss")):
                if name in columns:
                    self._columns[kind] = NpyWriter(self._path(kind), columns[name][0], (rows, sequence_length))
        self._with_segments = with_segments
        self._segments = 0
        # Where atoms are small, the segments of a shard can take more memory than its tokens.
        self._table = tempfile.SpooledTemporaryFile(_SPOOL_BYTES, dir=str(directory))  # noqa: SIM115
        self._counts: list[npt.NDArray[np.uint32]] = []

    def _path(self, kind: str) -> Path:
        return self._directory / shard_file(kind, self._number)

    def __enter__(self) -> PackedShardWriter:
        return self

    def __exit__(self, *failure: Any) -> None:
        self._table.close()
        for column in self._columns.values():
            column.__exit__(*failure)

    def add(self, tokens: npt.NDArray[Any] | None, rows: Segments | None, loss: npt.NDArray[Any] | None = None) -> None:
        """Append the tokens of whole rows (any shape, row after row), their segments, and whether they train."""
        for kind, values in (("tokens", tokens), ("loss", loss)):
            if kind in self._columns and values is not None:
                self._columns[kind].write(values)
        if self._with_segments and rows is not None:
            self._table.write(to_table(rows).data)
            self._segments += len(rows)
            self._counts.append(np.diff(rows.offsets).astype(np.uint32))

    def close(self, atoms: I64 | None = None) -> PackedShard:
        """Finish the shard's files; `atoms` are the rows of this shard at which an atom begins."""
        segments = segment_offsets = atoms_entry = None
        if self._with_segments:
            self._table.seek(0)
            with NpyWriter(self._path("segments"), SEGMENT, (self._segments,)) as out:
                while block := self._table.read(WRITE_BYTES):
                    out.write(block)
                segments = out.close()
            counts = np.concatenate([np.empty(0, np.uint32), *self._counts])
            segment_offsets = write_array(self._path("segment_offsets"), offsets_of(counts))
        if atoms is not None:
            atoms_entry = write_array(self._path("atoms"), atoms)
        written = {kind: column.close() for kind, column in self._columns.items()}
        return PackedShard(written.get("tokens"), segments, segment_offsets, atoms_entry, written.get("loss"))
