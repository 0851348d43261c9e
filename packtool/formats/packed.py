"""The packed dataset: rows of tokens in shards, and which segment of which document lies where.

A shard is `tokens-NNNNN.npy` (rows × sequence_length), `segments-NNNNN.npy` and `segment_offsets-NNNNN.npy`
(rows + 1), and `atoms-NNNNN.npy` where atoms span a varying number of rows: the rows of this shard at which an atom
begins. `lengths.npy`, next to the manifest, has every document's length, EOS included, so that the dataset alone can
account for every token. Columns that were kept of the documents lie there, too (`kept_columns.py`).
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from itertools import pairwise
from pathlib import Path, PurePosixPath
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from packtool.errors import DataError
from packtool.formats import manifest as manifests
from packtool.formats.batch_table import read_batches
from packtool.formats.files import WRITE_BYTES, NpyWriter, write_array
from packtool.formats.kept_columns import KeptColumns
from packtool.formats.names import LOSS, OFFSET, SEGMENT, shard_file
from packtool.formats.on_demand import held, open_all, open_arrays, slice_reader
from packtool.formats.schema import Bucket, PackedManifest, PackedShard, listed_files
from packtool.formats.segment_table import (
    from_table,
    no_segments,
    require_atoms,
    require_rows,
    require_segments,
    to_table,
)
from packtool.formats.unchanged import Unchanged
from packtool.places.npy import FileEntry
from packtool.places.place import MappedFile, Place
from packtool.places.slices import SliceReader
from packtool.places.typed import Typed, place_of
from packtool.planning.document_loss import DocumentLoss
from packtool.planning.plan import I64, Ints, Segments, offsets_of, ranges
from packtool.support.mapped import release

_CHECKED_ROWS = 1 << 16
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


class PackedBucket:
    """Rows of one length, in shards.

    What needs segments raises a UsageError where the dataset was written with ``--no-segments``, and a DataError where
    a segment lies outside its document.

    Args:
        dataset: where the dataset lies.
        entry: of the bucket, from its manifest.
        dtype: of the tokens.
        lengths: of every document, EOS included; None where segments are not checked against them.
        keep: how many arrays of each kind stay open, each opened when it is first read; None for all that the place
            allows.
        column: which column to read: tokens or loss.
        has_loss: whether the dataset has a loss.
        index_only: its rows are gathered from token stores; only the manifest knows, since a bucket may be empty.
        unchanged: the dataset that files must be of, however late they are opened; None where nobody looks.
    """

    def __init__(
        self,
        dataset: Place,
        entry: Bucket,
        dtype: np.dtype[Any],
        lengths: Ints | None,
        keep: int | None = None,
        column: Literal["tokens", "loss"] = "tokens",
        has_loss: bool = False,
        index_only: bool = False,
        unchanged: Unchanged | None = None,
    ) -> None:
        self._dataset = dataset
        self.place = dataset.below(entry.directory)  # where the bucket lies
        self.entry = entry
        self.sequence_length = entry.sequence_length
        self.dtype = dtype
        self.rows = entry.rows
        self._keep = keep
        self._column = column
        held: list[FileEntry] = list(filter(None, (getattr(shard, column) for shard in entry.shards)))
        self._files = [(self.place, file) for file in held]
        self.index_only = index_only
        self.gather: Gather | None = None  # gathers the rows; None if they are not to be read
        self._unchanged = unchanged
        self.shards = open_arrays(self.place, held, dtype, keep, unchanged)  # (rows, sequence_length) of each; or empty
        self.first_rows = offsets_of(np.array([shard.rows for shard in entry.shards], np.int64))
        self.loss: PackedBucket | None = None
        """The loss of the tokens, read like tokens of a bucket of its own; None where all of them train."""
        if has_loss:
            self.loss = PackedBucket(
                dataset, entry, LOSS, lengths, keep, "loss", index_only=index_only, unchanged=unchanged
            )
        self._lengths = lengths
        self._tables: Sequence[tuple[npt.NDArray[Any], npt.NDArray[Any]]] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        make = partial(
            PackedBucket, column=self._column, keep=self._keep, index_only=self.index_only, unchanged=self._unchanged
        )
        given = self._dataset, self.entry, self.dtype, self._lengths
        return make, given, {"gather": self.gather, "loss": self.loss}

    @property
    def has_segments(self) -> bool:
        return all(s.segments is not None for s in self.entry.shards)

    @property
    def segment_counts(self) -> list[int]:
        """Segments of each shard; 0 where they are not known."""
        counts = []
        for shard in self.entry.shards:
            counts.append(shard.segments.shape[0] if shard.segments is not None else 0)
        return counts

    def tokens(self, first: int, last: int) -> npt.NDArray[Any]:
        """Return rows ``first:last``, (rows, sequence_length): a view if they lie in one shard."""
        if self.index_only:
            return self.gathered(self.segments(first, last))
        parts = [self.shards[number][a:b] for number, a, b in self._ranges(first, last)]
        if len(parts) == 1:
            return parts[0]
        return np.concatenate([np.empty((0, self.sequence_length), self.dtype), *parts])

    def take(self, rows: I64) -> npt.NDArray[Any]:
        """Copy these rows, (rows, sequence_length)."""
        if self.index_only:
            return self.gathered(self.segments_of(rows))
        if self._slices is not None:
            number = np.searchsorted(self.first_rows, rows, side="right") - 1
            first = (rows - self.first_rows[number]) * self.sequence_length
            parts = self._slices(number, first, np.full(len(rows), self.sequence_length))
            return np.frombuffer(bytearray().join(parts), self.dtype).reshape(len(rows), self.sequence_length)
        order, groups = self._by_shard(rows)
        if len(groups) == 1:
            ((shard, here, _),) = groups
            return np.take(self.shards[shard], here, axis=0)
        out = np.empty((len(rows), self.sequence_length), self.dtype)
        for shard, here, at in groups:
            out[order[at]] = np.take(self.shards[shard], here, axis=0)
        return out

    @cached_property
    def _slices(self) -> SliceReader | None:
        return slice_reader(self._files, self.dtype)

    def parts(self, rows: I64, part: I64, unit: int) -> npt.NDArray[Any]:
        """Copy parts of rows, (parts, unit): of each row the `unit` tokens from ``part * unit``."""
        out = np.empty((len(rows), unit), self.dtype)
        order, groups = self._by_shard(rows)
        for shard, here, at in groups:
            units, places = self.shards[shard].reshape(-1, unit), order[at]
            out[places] = np.take(units, here * (self.sequence_length // unit) + part[places], axis=0)
        return out

    def gathered(self, segments: Segments, unit: int | None = None) -> npt.NDArray[Any]:
        """Gather the tokens of segments that fill whole rows, (rows, sequence_length), or units of another length."""
        if self.gather is None:
            what = "its rows have to be gathered from token stores, which were not opened"
            raise DataError("store-missing", what, remedy="open it with its stores", where=str(self.place))
        return self.gather(segments).reshape(-1, unit or self.sequence_length)

    def table(self, row: int) -> npt.NDArray[Any]:
        """Return the segments of one row as stored: a view of the segment table."""
        ((number, first, last),) = self._ranges(row, row + 1)
        table, offsets = self.tables()[number]
        return self._segments(number, first, table, offsets[first : last + 1])

    def segments_of(self, rows: I64) -> Segments:
        """Return the segments of these rows, in the order given."""
        order, groups = self._by_shard(rows)
        tables = [self.tables()[shard] for shard, _, _ in groups]
        # Of each row, in the order of shards: where its segments lie in the table of its shard, and how long that is.
        first, last, sizes = np.empty((3, len(rows)), np.int64)
        for (table, offsets), (_, here, at) in zip(tables, groups, strict=True):
            first[at] = offsets[here]
            last[at] = offsets[here + 1]
            sizes[at] = len(table)
        counts = last - first
        wrong = np.flatnonzero((first < 0) | (counts < 1) | (last > sizes))
        if len(wrong):  # `require_rows` raises the error, which is of the row as its number was given
            one = int(wrong[0])
            near = np.array([first[one], last[one]])
            require_rows(near, int(sizes[one]), int(rows[order[one]]), str(self.place))
        by_shard = offsets_of(counts)
        source = ranges(first, counts, by_shard)
        if len(tables) == 1:  # rows of one shard keep their order when they are sorted by shard
            requested = by_shard
            out = np.take(tables[0][0], source)
        else:
            requested_counts = np.empty_like(counts)
            requested_counts[order] = counts
            requested = offsets_of(requested_counts)
            target = ranges(requested[:-1][order], counts, by_shard)
            out = np.empty(len(source), SEGMENT)
            for (table, _), (_, _, at) in zip(tables, groups, strict=True):
                part = slice(by_shard[at.start], by_shard[at.stop])
                out[target[part]] = np.take(table, source[part])
        require_segments(out, requested, self._lengths, self.sequence_length, rows, str(self.place))
        return from_table(out, requested)

    def segments(self, first: int, last: int) -> Segments:
        """Return the segments of rows ``first:last``."""
        tables = self.tables()
        parts, counts = [np.empty(0, SEGMENT)], [np.empty(0, np.int64)]
        for number, a, b in self._ranges(first, last):
            table, offsets = tables[number]
            near = offsets[a : b + 1]
            parts.append(self._segments(number, a, table, near))
            counts.append(np.diff(near))
        return from_table(np.concatenate(parts), offsets_of(np.concatenate(counts)))

    def checked_tables(self) -> Sequence[tuple[npt.NDArray[Any], npt.NDArray[Any]]]:
        """Return segment table and row offsets of each shard, all of them checked."""
        for number, (table, offsets) in enumerate(self.tables()):
            if len(offsets) and (offsets[0] != 0 or offsets[-1] != len(table)):
                what = f"row {int(self.first_rows[number])}: the segment table begins or ends outside its rows"
                raise DataError("bad-segments", what, remedy="make the dataset again", where=str(self.place))
            for first in range(0, len(offsets) - 1, _CHECKED_ROWS):
                self._segments(number, first, table, offsets[first : first + _CHECKED_ROWS + 1])
        return self.tables()

    def _segments(
        self, number: int, first: int, table: npt.NDArray[Any], near: npt.NDArray[np.int64]
    ) -> npt.NDArray[Any]:
        """Read and check the segments of the rows of a shard that these offsets belong to."""
        row = int(self.first_rows[number]) + first
        require_rows(near, len(table), row, str(self.place))
        part = table[near[0] : near[-1]]
        require_segments(part, near - near[0], self._lengths, self.sequence_length, row, str(self.place))
        return part

    def release(self) -> None:
        """Give back the memory that maps the tokens and segments read so far."""
        release(held(self.shards))
        if self.loss is not None:
            self.loss.release()
        if self.gather is not None:
            self.gather.release()
        for tables in held(self._tables or ()):
            release(tables)

    def atom_offsets(self) -> I64 | None:
        """Return the first row of each atom, then the number of rows; None if atoms are uniform."""
        if self.entry.atom_units:
            return None
        begins = [np.empty(0, np.int64)]
        for shard, first in zip(self.entry.shards, self.first_rows, strict=False):
            if shard.atoms is not None:
                here = self.place.array(shard.atoms, OFFSET)
                require_atoms(here, shard.rows, self.place.where(shard.atoms.name))
                begins.append(here + first)
        return np.concatenate([*begins, [self.rows]]).astype(np.int64)

    def files(self) -> Iterator[MappedFile]:
        """Yield every file of the bucket."""
        for number, entry in enumerate(self.entry.shards):
            if entry.tokens is not None:
                yield MappedFile(self.place, entry.tokens, self.shards[number])
            if entry.loss and self.loss is not None:
                yield MappedFile(self.place, entry.loss, self.loss.shards[number])
            if entry.segments is not None and entry.segment_offsets is not None:
                table, offsets = self.tables()[number]
                yield MappedFile(self.place, entry.segments, table)
                yield MappedFile(self.place, entry.segment_offsets, offsets)
            if entry.atoms is not None:
                yield MappedFile.opened(self.place, entry.atoms, OFFSET)

    def tables(self) -> Sequence[tuple[npt.NDArray[Any], npt.NDArray[Any]]]:
        """Return segment table and row offsets of each shard, memory-mapped."""
        if self._tables is None:
            if not self.has_segments:
                raise no_segments(self.place)
            sizes = [2] * len(self.entry.shards)
            self._tables = open_all(sizes, self._table, self.place, self._keep, self._unchanged)
        return self._tables

    def _table(self, number: int) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        shard = self.entry.shards[number]
        assert shard.segments is not None
        assert shard.segment_offsets is not None
        return self.place.array(shard.segments, SEGMENT), self.place.array(shard.segment_offsets, OFFSET)

    def _ranges(self, first: int, last: int) -> list[tuple[int, int, int]]:
        """List (shard, first, last row in it) of the shards that rows ``first:last`` touch."""
        out = []
        number = int(np.searchsorted(self.first_rows, first, side="right")) - 1
        while first < last:
            begin, end = int(self.first_rows[number]), int(self.first_rows[number + 1])
            stop = min(last, end)
            if stop > first:
                out.append((number, first - begin, stop - begin))
            first, number = stop, number + 1
        return out

    def _by_shard(self, rows: I64) -> tuple[I64, list[tuple[int, I64, slice]]]:
        """Sort rows by shard, stably.

        Returns:
            The order, (rows) places in `rows`; and of each shard that has some of the rows its number, the rows as the
            shard counts them, and where they are in the order.
        """
        if len(self.entry.shards) == 1:
            return np.arange(len(rows)), [(0, rows, slice(0, len(rows)))]
        shards = np.searchsorted(self.first_rows, rows, side="right") - 1
        order = np.argsort(shards, kind="stable")
        shards = shards[order]
        here = rows[order] - self.first_rows[shards]
        cuts = [0, *(np.flatnonzero(shards[1:] != shards[:-1]) + 1).tolist(), len(rows)]
        return order, [(int(shards[a]), here[a:b], slice(a, b)) for a, b in pairwise(cuts) if a < b]


class PackedDataset:
    """Read access to a packed dataset.

    Args:
        place: where it lies.
        keep: as in `PackedBucket`. Where it is given, opening looks at the sizes of files only, and segments are not
            checked against the lengths of documents.
        unchanged: as in `PackedBucket`.

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
        self.buckets = [
            PackedBucket(
                self.place,
                bucket,
                self.dtype,
                self._lengths,
                keep,
                has_loss=manifest.has_loss,
                index_only=manifest.index_only,
                unchanged=unchanged,
            )
            for bucket in manifest.buckets
        ]
        if keep is not None:
            kept = ("tokens", "loss", "segments", "segment_offsets", "column", "categories")
            files = listed_files(manifest)
            self.place.require([file for file in files if PurePosixPath(file.name).name.partition("-")[0] in kept])

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

    def files(self) -> Iterator[MappedFile]:
        """Yield every array that rows are made of, except fetched arrays, which are checked on arrival."""
        if self.place.sound:
            return
        for bucket in self.buckets:
            yield from bucket.files()
        for gather in {id(bucket.gather): bucket.gather for bucket in self.buckets}.values():
            if gather is not None:
                yield from gather.files()
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
        return None if manifest.batches is None else read_batches(self.place, manifest.batches, manifest.buckets)


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
