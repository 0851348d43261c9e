"""The files of a packed dataset, mapped when they are first read; and the rows and segments of one bucket in them.

A trainer opens a dataset in many processes and reads a little of it at a time. So opening looks at the sizes of the
files only, and at most `MAPPED` of them are mapped at once, which bounds file descriptors.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from packtool.errors import DataError
from packtool.places.mirror import is_mirror, is_ranged, size_of
from packtool.plan import I64, Segments, offsets_of, ranges
from packtool.storage.contents import require_atoms, require_rows, require_segments
from packtool.storage.files import FileEntry
from packtool.storage.manifest import Bucket
from packtool.storage.names import OFFSET, SEGMENT
from packtool.storage.reading import open_array, subdirectory
from packtool.storage.segment_table import from_table, no_segments

MAPPED = 256
"""Files that one dataset keeps mapped at once."""
FETCHED = 12
"""As many where they come from an object store: one that was removed to make room goes when it is not mapped."""

Array = npt.NDArray[Any]


class Files:
    """The array files of one dataset.

    Args:
        path: of the dataset.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.array: Callable[[str, FileEntry, np.dtype[Any]], Array] = lru_cache(
            FETCHED if is_mirror(path) and not is_ranged(path) else MAPPED
        )(lambda directory, entry, dtype: open_array(subdirectory(path, directory), entry, dtype))

    def check(self, directory: str, entry: FileEntry) -> None:
        """Make sure that a file is there and as long as the manifest says; its contents are read when needed."""
        file = self.path / directory / entry.name
        found = size_of(file)
        if found is None:
            raise DataError(
                "missing-shard", "named in the manifest, but not there", remedy="make it again", where=str(file)
            )
        if found != entry.bytes:
            raise DataError(
                "damaged-shard",
                f"has {found} bytes, but the manifest says {entry.bytes}",
                remedy="make it again",
                where=str(file),
            )


class StoredRows:
    """The rows of one bucket as they are stored.

    Args:
        files: of the dataset.
        entry: of the bucket.
        dtype: of its tokens.
    """

    def __init__(self, files: Files, entry: Bucket, dtype: np.dtype[Any]) -> None:
        self.entry = entry
        self.sequence_length = entry.sequence_length
        self.rows = entry.rows
        self.dtype = dtype
        self._files = files
        self._where = str(files.path / entry.directory)
        subdirectory(files.path, entry.directory)
        for shard in entry.shards:
            for file in (shard.tokens, shard.segments, shard.segment_offsets):
                if file is not None:
                    files.check(entry.directory, file)
        self.first_rows = offsets_of(np.array([shard.tokens.shape[0] for shard in entry.shards], np.int64))

    @property
    def has_segments(self) -> bool:
        return all(shard.segments is not None for shard in self.entry.shards)

    def range(self, first: int, last: int) -> Array:
        """Rows ``first:last``, (rows, sequence_length); a read-only view where they lie in one shard."""
        shard = self._shard_of(first)
        if first < last <= self.first_rows[shard + 1]:
            begin = int(self.first_rows[shard])
            return self._tokens(shard)[first - begin : last - begin]
        return self.tokens(np.arange(first, last))

    def tokens(self, rows: I64) -> Array:
        """The rows of these numbers, (rows, sequence_length), copied."""
        out = np.empty((len(rows), self.sequence_length), self.dtype)
        for shard, here, places in self._grouped(rows):
            out[places] = np.take(self._tokens(shard), here, axis=0)
        return out

    def parts(self, rows: I64, part: I64, unit: int) -> Array:
        """Parts of rows, (parts, unit): of each row the `unit` tokens from ``part * unit``."""
        out = np.empty((len(rows), unit), self.dtype)
        for shard, here, places in self._grouped(rows):
            units = self._tokens(shard).reshape(-1, unit)
            out[places] = np.take(units, here * (self.sequence_length // unit) + part[places], axis=0)
        return out

    def table(self, row: int) -> Array:
        """The segments of one row as stored: a view of the segment table.

        Raises:
            UsageError: the dataset was written with ``--no-segments``.
        """
        shard = self._shard_of(row)
        table, offsets = self._segments(shard)
        inside = row - int(self.first_rows[shard])
        near = offsets[inside : inside + 2]
        require_rows(near, len(table), row, self._where)
        segments = table[near[0] : near[1]]
        require_segments(segments, near - near[0], None, self.sequence_length, row, self._where)
        return segments

    def segments(self, rows: I64) -> Segments:
        """The segments of the rows of these numbers, in the order given.

        Raises:
            UsageError: the dataset was written with ``--no-segments``.
        """
        first, counts = np.empty(len(rows), np.int64), np.empty(len(rows), np.int64)
        tables = list(self._grouped(rows))
        for shard, here, places in tables:
            table, offsets = self._segments(shard)
            begin, end = offsets[here], offsets[here + 1]
            wrong = np.flatnonzero((begin < 0) | (end <= begin) | (end > len(table)))
            if len(wrong):
                at = wrong[0]
                require_rows(np.array([begin[at], end[at]]), len(table), int(rows[places][at]), self._where)
            first[places], counts[places] = begin, end - begin
        begins = offsets_of(counts)
        out = np.empty(int(begins[-1]), SEGMENT)
        for shard, _, places in tables:
            mine = counts[places]
            inner = offsets_of(mine)
            found = np.take(self._segments(shard)[0], ranges(first[places], mine, inner))
            out[ranges(begins[:-1][places], mine, inner)] = found
        require_segments(out, begins, None, self.sequence_length, rows, self._where)
        return from_table(out, begins)

    def atom_offsets(self) -> I64 | None:
        """First row of each atom, then the number of rows; None where atoms are uniform."""
        if self.entry.atom_units:
            return None
        begins = [np.empty(0, np.int64)]
        for shard, first in zip(self.entry.shards, self.first_rows, strict=False):
            if shard.atoms is not None:
                here = self._files.array(self.entry.directory, shard.atoms, OFFSET)
                require_atoms(here, shard.tokens.shape[0], str(self._files.path / shard.atoms.name))
                begins.append(here + first)
        return np.concatenate([*begins, [self.rows]]).astype(np.int64)

    def _shard_of(self, row: int) -> int:
        return int(np.searchsorted(self.first_rows, row, side="right")) - 1

    def _grouped(self, rows: I64) -> list[tuple[int, I64, I64]]:
        """For each shard that holds any of these rows: its number, the rows counted in it, their places."""
        shards = np.searchsorted(self.first_rows, rows, side="right") - 1
        order = np.argsort(shards, kind="stable")
        cuts = np.flatnonzero(np.diff(shards[order])) + 1
        groups = [places for places in np.split(order, cuts) if len(places)]
        return [(int(shards[g[0]]), rows[g] - self.first_rows[shards[g[0]]], g) for g in groups]

    def _tokens(self, shard: int) -> Array:
        return self._files.array(self.entry.directory, self.entry.shards[shard].tokens, self.dtype)

    def _segments(self, shard: int) -> tuple[Array, Array]:
        entry = self.entry.shards[shard]
        if entry.segments is None or entry.segment_offsets is None:
            raise no_segments(self._files.path)
        directory = self.entry.directory
        table = self._files.array(directory, entry.segments, SEGMENT)
        return table, self._files.array(directory, entry.segment_offsets, OFFSET)
