"""The shards of rows of one length: where they lie, which rows each of them has, and the columns of rows in them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from packtool.errors import DataError
from packtool.formats.names import OFFSET
from packtool.formats.on_demand import open_arrays, open_now, slice_reader
from packtool.formats.schema import Bucket
from packtool.formats.unchanged import Unchanged
from packtool.places.npy import FileEntry
from packtool.places.place import DATASET_AGAIN, Place
from packtool.places.slices import SliceReader
from packtool.planning.plan import I64, offsets_of
from packtool.support.mapped import release


@dataclass(frozen=True)
class BucketShards:
    """The shards of a bucket, without what is in them.

    Attributes:
        place: where the bucket lies.
        entry: of the bucket, from the manifest of its dataset.
        keep: how many arrays of each kind stay open, each opened when it is first read; None for all that the place
            allows.
        unchanged: the dataset that files must be of, however late they are opened; None where nobody looks.
    """

    place: Place
    entry: Bucket
    keep: int | None = None
    unchanged: Unchanged | None = None

    @cached_property
    def first_rows(self) -> I64:
        """The first row of each shard, then the number of rows."""
        return offsets_of(np.array([shard.rows for shard in self.entry.shards], np.int64))

    def column(self, name: Literal["tokens", "loss"]) -> list[FileEntry]:
        """Return the file of each shard with a column of its rows, if they have it and are not gathered."""
        return list(filter(None, (getattr(shard, name) for shard in self.entry.shards)))

    def spans(self, first: int, last: int) -> Iterator[tuple[int, int, int]]:
        """Yield (shard, first, last row in it) of the shards that rows ``first:last`` touch."""
        number = int(np.searchsorted(self.first_rows, first, side="right")) - 1
        while first < last:
            start, end = int(self.first_rows[number]), int(self.first_rows[number + 1])
            stop = min(last, end)
            if stop > first:
                yield number, first - start, stop - start
            first, number = stop, number + 1

    def by_shard(self, rows: I64) -> tuple[I64, list[tuple[int, I64, slice]]]:
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

    def atom_offsets(self) -> I64 | None:
        """Return the first row of each atom, then the number of rows; None if atoms are uniform."""
        if self.entry.atom_units:
            return None
        starts = [np.empty(0, np.int64)]
        for shard, first in zip(self.entry.shards, self.first_rows, strict=False):
            if shard.atoms is not None:
                here = self.place.array(shard.atoms, OFFSET)
                _require_atoms(here, shard.rows, self.place.where(shard.atoms.name))
                starts.append(here + first)
        return np.concatenate([*starts, [self.entry.rows]]).astype(np.int64)


class StoredColumn:
    """A column in the shards of a bucket.

    Args:
        shards: of the bucket.
        name: of the column.
        dtype: of its values.

    Attributes:
        arrays: (rows, sequence_length) of each shard.
    """

    def __init__(self, shards: BucketShards, name: Literal["tokens", "loss"], dtype: np.dtype[Any]) -> None:
        self._shards = shards
        self._name = name
        self.dtype = dtype
        self.arrays = open_arrays(shards.place, shards.column(name), dtype, shards.keep, shards.unchanged)

    def __reduce__(self) -> tuple[Any, ...]:
        return StoredColumn, (self._shards, self._name, self.dtype)

    def between(self, first: int, last: int) -> npt.NDArray[Any]:
        """Return rows ``first:last``, (rows, sequence_length): a view if they lie in one shard."""
        parts = [self.arrays[number][a:b] for number, a, b in self._shards.spans(first, last)]
        if len(parts) == 1:
            return parts[0]
        return np.concatenate([np.empty((0, self._shards.entry.sequence_length), self.dtype), *parts])

    def take(self, rows: I64) -> npt.NDArray[Any]:
        """Copy these rows, (rows, sequence_length)."""
        length = self._shards.entry.sequence_length
        if self._slices is not None:
            first_rows = self._shards.first_rows
            number = np.searchsorted(first_rows, rows, side="right") - 1
            first = (rows - first_rows[number]) * length
            parts = self._slices(number, first, np.full(len(rows), length))
            return np.frombuffer(bytearray().join(parts), self.dtype).reshape(len(rows), length)
        order, groups = self._shards.by_shard(rows)
        if len(groups) == 1:
            ((shard, here, _),) = groups
            return np.take(self.arrays[shard], here, axis=0)
        out = np.empty((len(rows), length), self.dtype)
        for shard, here, at in groups:
            out[order[at]] = np.take(self.arrays[shard], here, axis=0)
        return out

    @cached_property
    def _slices(self) -> SliceReader | None:
        return slice_reader([(self._shards.place, file) for file in self._shards.column(self._name)], self.dtype)

    def parts(self, rows: I64, part: I64, unit: int) -> npt.NDArray[Any]:
        """Copy parts of rows, (parts, unit): of each row the `unit` values from ``part * unit``."""
        out = np.empty((len(rows), unit), self.dtype)
        order, groups = self._shards.by_shard(rows)
        for shard, here, at in groups:
            units, places = self.arrays[shard].reshape(-1, unit), order[at]
            out[places] = np.take(units, here * (self._shards.entry.sequence_length // unit) + part[places], axis=0)
        return out

    def release(self) -> None:
        """Give back the memory that maps the rows read so far."""
        release(open_now(self.arrays))


def _require_atoms(starts: npt.NDArray[np.int64], rows: int, where: str) -> None:
    """Raise a DataError unless the rows of a shard at which an atom starts are ascending, and inside the shard."""
    if len(starts) and not (starts[0] >= 0 and starts[-1] < rows and (np.diff(starts) > 0).all()):
        raise DataError("bad-segments", f"its atoms do not lie in its {rows} rows", remedy=DATASET_AGAIN, where=where)
