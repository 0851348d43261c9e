"""The packed dataset: rows of tokens in shards, and beside them which segment of which document lies where.

A shard is `tokens-NNNNN.npy` (rows × sequence_length), `segments-NNNNN.npy` and `segment_offsets-NNNNN.npy`
(rows + 1), and `atoms-NNNNN.npy` where atoms span a varying number of rows: the rows of this shard at which an atom
begins. `lengths.npy` beside the manifest has every document's length, EOS included, so that the dataset alone can
account for every token.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from packtool.errors import DataError, UsageError
from packtool.places.maps import release
from packtool.places.mirror import is_mirror
from packtool.plan import I64, Ints, Segments, offsets_of
from packtool.storage import manifest as manifests
from packtool.storage.carried import FromStore, arrived, carried
from packtool.storage.contents import require_atoms, require_rows, require_segments
from packtool.storage.manifest import Bucket, PackedManifest
from packtool.storage.names import BATCHES, LENGTHS, OFFSET, SEGMENT, bucket_directory
from packtool.storage.names import ORDER_FILE as ORDER
from packtool.storage.on_demand import held, open_all
from packtool.storage.order import read_batches
from packtool.storage.reading import MappedFile, open_array, subdirectory
from packtool.storage.segment_table import from_table, no_segments

__all__ = [
    "BATCHES",
    "LENGTHS",
    "ORDER",
    "SEGMENT",
    "PackedBucket",
    "PackedDataset",
    "bucket_directory",
]

_CHECKED_ROWS = 1 << 16


class PackedBucket:
    """Rows of one length, as memory-mapped shards.

    Args:
        path: of the dataset.
        entry: of the bucket, from its manifest.
        dtype: of the tokens.
        lengths: of every document, EOS included; None where the dataset has no segments.

    Attributes:
        sequence_length: tokens in a row.
        dtype: of the tokens.
        shards: one (rows, sequence_length) array for each shard.
        first_rows: first row of each shard, then the number of rows.
    """

    def __init__(self, path: Path, entry: Bucket, dtype: np.dtype[Any], lengths: Ints | None) -> None:
        self._dataset = path
        self.path = subdirectory(path, entry.directory)
        self.entry = entry
        self.sequence_length = entry.sequence_length
        self.dtype = dtype
        self.rows = entry.rows
        self.shards = open_all(
            [shard.tokens.shape[0] for shard in entry.shards],
            lambda number: open_array(self.path, entry.shards[number].tokens, dtype),
            self.path,
        )
        self.first_rows = offsets_of(np.array([s.tokens.shape[0] for s in entry.shards], np.int64))
        self._lengths = lengths
        self._tables: Sequence[tuple[npt.NDArray[Any], npt.NDArray[Any]]] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return _arrived, (carried(self._dataset), self.entry, self.dtype, self._lengths)

    @property
    def has_segments(self) -> bool:
        return all(s.segments is not None for s in self.entry.shards)

    @property
    def segment_counts(self) -> list[int]:
        """Segments of each shard; 0 where they are not known."""
        return [0 if s.segments is None else s.segments.shape[0] for s in self.entry.shards]

    def tokens(self, first: int, last: int) -> npt.NDArray[Any]:
        """Rows ``first:last``, (rows, sequence_length); a view where they lie in one shard."""
        parts = [shard[a:b] for shard, a, b in self._split(first, last)]
        return parts[0] if len(parts) == 1 else np.concatenate([self._none(), *parts])

    def segments(self, first: int, last: int) -> Segments:
        """The segments of rows ``first:last``.

        Raises:
            UsageError: the dataset was written with ``--no-segments``.
        """
        tables = self.tables()
        parts, counts = [np.empty(0, SEGMENT)], [np.empty(0, np.int64)]
        for number, a, b in self._ranges(first, last):
            table, offsets = tables[number]
            near = offsets[a : b + 1]
            parts.append(self._segments(number, a, table, near))
            counts.append(np.diff(near))
        return from_table(np.concatenate(parts), offsets_of(np.concatenate(counts)))

    def checked_tables(self) -> Sequence[tuple[npt.NDArray[Any], npt.NDArray[Any]]]:
        """Segment table and row offsets of each shard, all of them checked."""
        for number, (table, offsets) in enumerate(self.tables()):
            if len(offsets) and (offsets[0] != 0 or offsets[-1] != len(table)):
                what = f"row {int(self.first_rows[number])}: the segment table begins or ends outside its rows"
                raise DataError("bad-segments", what, remedy="make the dataset again", where=str(self.path))
            for first in range(0, len(offsets) - 1, _CHECKED_ROWS):
                self._segments(number, first, table, offsets[first : first + _CHECKED_ROWS + 1])
        return self.tables()

    def _segments(
        self, number: int, first: int, table: npt.NDArray[Any], near: npt.NDArray[np.int64]
    ) -> npt.NDArray[Any]:
        """The segments of the rows of a shard that these offsets belong to, checked."""
        row = int(self.first_rows[number]) + first
        require_rows(near, len(table), row, str(self.path))
        part = table[near[0] : near[-1]]
        if self._lengths is not None:
            require_segments(part, near - near[0], self._lengths, self.sequence_length, row, str(self.path))
        return part

    def release(self) -> None:
        """Give back the memory that maps the tokens and segments read so far."""
        release(held(self.shards))
        for tables in held(self._tables or ()):
            release(tables)

    def atom_offsets(self) -> I64 | None:
        """First row of each atom, then the number of rows; None where atoms are uniform."""
        if self.entry.atom_units:
            return None
        begins = [np.empty(0, np.int64)]
        for shard, first in zip(self.entry.shards, self.first_rows, strict=False):
            if shard.atoms is not None:
                here = open_array(self.path, shard.atoms, OFFSET)
                require_atoms(here, shard.tokens.shape[0], str(self.path / shard.atoms.name))
                begins.append(here + first)
        return np.concatenate([*begins, [self.rows]]).astype(np.int64)

    def files(self) -> Iterator[MappedFile]:
        """Every file of the bucket."""
        for number, (entry, rows) in enumerate(zip(self.entry.shards, self.shards, strict=True)):
            yield MappedFile(self.path / entry.tokens.name, rows, entry.tokens.xxh3_128)
            if entry.segments is not None and entry.segment_offsets is not None:
                table, offsets = self.tables()[number]
                yield MappedFile(self.path / entry.segments.name, table, entry.segments.xxh3_128)
                yield MappedFile(self.path / entry.segment_offsets.name, offsets, entry.segment_offsets.xxh3_128)
        yield from self.atom_files()

    def atom_files(self) -> Iterator[MappedFile]:
        """Those of its files that list atoms."""
        for entry in self.entry.shards:
            if entry.atoms is not None:
                atoms = open_array(self.path, entry.atoms, OFFSET)
                yield MappedFile(self.path / entry.atoms.name, atoms, entry.atoms.xxh3_128)

    def tables(self) -> Sequence[tuple[npt.NDArray[Any], npt.NDArray[Any]]]:
        """Segment table and row offsets of each shard, memory-mapped.

        Raises:
            UsageError: the dataset was written with ``--no-segments``.
        """
        if self._tables is None:
            if not self.has_segments:
                raise no_segments(self.path)
            self._tables = open_all([2] * len(self.entry.shards), self._table, self.path)
        return self._tables

    def _table(self, number: int) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        shard = self.entry.shards[number]
        if shard.segments is None or shard.segment_offsets is None:
            raise no_segments(self.path)
        table = open_array(self.path, shard.segments, SEGMENT)
        return table, open_array(self.path, shard.segment_offsets, OFFSET)

    def _ranges(self, first: int, last: int) -> list[tuple[int, int, int]]:
        """(shard, first, last row in it) of the shards that rows ``first:last`` touch."""
        out = []
        number = int(np.searchsorted(self.first_rows, first, side="right")) - 1
        while first < last:
            begin, end = int(self.first_rows[number]), int(self.first_rows[number + 1])
            stop = min(last, end)
            if stop > first:
                out.append((number, first - begin, stop - begin))
            first, number = stop, number + 1
        return out

    def _split(self, first: int, last: int) -> list[tuple[npt.NDArray[Any], int, int]]:
        return [(self.shards[number], a, b) for number, a, b in self._ranges(first, last)]

    def _none(self) -> npt.NDArray[Any]:
        return np.empty((0, self.sequence_length), self.dtype)


def _arrived(place: Path | FromStore, entry: Bucket, dtype: np.dtype[Any], lengths: Ints | None) -> PackedBucket:
    return PackedBucket(arrived(place), entry, dtype, lengths)


class PackedDataset:
    """Read access to a packed dataset.

    Raises:
        DataError: missing, unfinished or damaged.
        UsageError: a token store rather than a packed dataset.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        manifest = manifests.read(self.path)
        if not isinstance(manifest, PackedManifest):
            raise UsageError(
                "not-packed",
                f"{manifests.describe(manifest)}, where a packed dataset is needed",
                remedy="give what packtool pack or packtool shuffle wrote",
                where=str(path),
            )
        self.manifest = manifest
        self.dtype = np.dtype(manifest.dtype)
        self._lengths: Ints | None = None
        if manifest.lengths is not None:
            self._lengths = open_array(self.path, manifest.lengths, "<u4")
        self.buckets = [PackedBucket(self.path, bucket, self.dtype, self._lengths) for bucket in manifest.buckets]

    @property
    def has_segments(self) -> bool:
        return self.manifest.lengths is not None

    def lengths(self) -> Ints:
        """Length of each document of the corpus, EOS included, in tokens.

        Raises:
            UsageError: the dataset was written with ``--no-segments``.
        """
        if self._lengths is None:
            raise no_segments(self.path)
        return self._lengths

    def files(self) -> Iterator[MappedFile]:
        """Every array that rows are made of; none of those that are fetched, and checked then."""
        if is_mirror(self.path):
            return
        for bucket in self.buckets:
            yield from bucket.files()
        if self.manifest.lengths is not None:
            entry = self.manifest.lengths
            yield MappedFile(self.path / entry.name, np.asarray(self.lengths()), entry.xxh3_128)
        choice = self.manifest.choice
        if choice is not None and choice.documents is not None:
            entry = choice.documents
            yield MappedFile(self.path / entry.name, open_array(self.path, entry, OFFSET), entry.xxh3_128)

    def atom_files(self) -> Iterator[MappedFile]:
        """The files that list atoms."""
        for bucket in self.buckets:
            yield from bucket.atom_files()

    def chosen(self) -> list[I64] | None:
        """For each store, the stored document behind each of its documents; None where each is packed once.

        Raises:
            DataError: they are not documents of the stores.
        """
        choice = self.manifest.choice
        if choice is None or choice.documents is None:
            return None
        found = open_array(self.path, choice.documents, OFFSET)
        parts = np.split(found, np.cumsum(self.manifest.store_documents)[:-1])
        for part, source in zip(parts, choice.sources, strict=True):
            if len(part) and not (part.min() >= 0 and part.max() < source.documents):
                what = "names documents that the stores do not have"
                where = str(self.path / choice.documents.name)
                raise DataError("bad-choice", what, remedy="make the dataset again", where=where)
        return parts

    def batches(self) -> npt.NDArray[Any] | None:
        """The batches that the ``bucket`` shuffle made, of `BATCH`; None where it made none."""
        manifest = self.manifest
        return None if manifest.batches is None else read_batches(self.path, manifest.batches, manifest.buckets)
