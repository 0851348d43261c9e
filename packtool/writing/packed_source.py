"""Read the units of a packed dataset as they are stored, to put them into another order."""

from __future__ import annotations

from typing import Any

import numpy as np

from packtool.arrays import Arrays
from packtool.plan import I64, Segments, distinct
from packtool.storage.on_demand import flat
from packtool.storage.packed import PackedBucket
from packtool.writing.gather import copier
from packtool.writing.records import joined, with_loss
from packtool.writing.source import Source, Tokens, Units
from packtool.writing.stored_plan import StoredPlan

_WIDE = 64  # bytes; units from here on are moved by memory copies, narrower ones by NumPy


class PackedSource(Source):
    """One bucket of a packed dataset."""

    def __init__(self, plan: StoredPlan, pad_id: int) -> None:
        bucket = plan.bucket
        self._per_row = plan.sequence_length // plan.unit
        segments = None
        if plan.has_segments:
            segments = sum(bucket.segment_counts) + plan.units * (self._per_row > 1)
        super().__init__(plan, bucket.dtype if bucket.loss is None else with_loss(bucket.dtype), pad_id, segments)
        self._bucket = bucket
        self._stored = plan
        self._columns = [bucket] if bucket.loss is None else [bucket, bucket.loss]
        self._copiers = [] if bucket.index_only else [UnitCopier(column, plan.unit) for column in self._columns]

    def __reduce__(self) -> tuple[Any, ...]:
        return PackedSource, (self._stored, self.pad_id)

    def prepare(self, arrays: Arrays) -> None:
        if self._stored.has_segments:
            self._stored.prepare(arrays)

    def read(self, units: I64) -> Units:
        segments = self._stored.segments(units) if self._stored.has_segments else None
        if not self._copiers:
            assert segments is not None
            return segments, self._gathered(segments)
        return segments, _record([copy(units) for copy in self._copiers])

    def scan(self, first: int, last: int) -> Units:
        if not self._copiers:
            scanned = self._stored.scan(first, last)
            return scanned, self._gathered(scanned)
        row = first // self._per_row
        rows = [column.tokens(row, -(-last // self._per_row)) for column in self._columns]
        segments = self._stored.scan(first, last) if self._stored.has_segments else None
        units = _record(
            [each.reshape(-1, self.plan.unit)[first - row * self._per_row :][: last - first] for each in rows]
        )
        return segments, units

    def _gathered(self, segments: Segments) -> Tokens:
        return _record([column.gathered(segments, self.plan.unit) for column in self._columns])

    def release(self) -> None:
        self._bucket.release()


def _record(columns: list[Tokens]) -> Tokens:
    """Return tokens alone, or with their loss."""
    return columns[0] if len(columns) == 1 else joined(*columns)


class UnitCopier:
    """Copies the tokens of units of equal size out of the shards of one bucket, in any order."""

    def __init__(self, bucket: PackedBucket, unit: int) -> None:
        self._unit = unit
        self._dtype = bucket.dtype
        self._shards = flat(bucket.shards, bucket.sequence_length)
        self._first_units = bucket.first_rows * (bucket.sequence_length // unit)
        self._copy = copier(self._shards, self._dtype)

    def __call__(self, units: I64) -> Tokens:
        if len(self._shards) == 1:
            return np.take(self._shards[0].reshape(-1, self._unit), units, axis=0)
        shard = np.searchsorted(self._first_units, units, side="right") - 1
        place = units - self._first_units[shard]
        if self._unit * self._dtype.itemsize >= _WIDE:
            return self._copy(shard, place * self._unit, np.full(len(units), self._unit)).reshape(-1, self._unit)
        out = np.empty((len(units), self._unit), self._dtype)
        for number in distinct(shard).tolist():
            here = np.flatnonzero(shard == number)
            out[here] = np.take(self._shards[number].reshape(-1, self._unit), place[here], axis=0)
        return out
