"""A packed dataset as a plan: its rows, cut to the units of its atoms, ready for another order."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from packtool.arrays import IN_MEMORY, Arrays
from packtool.plan import I64, Ints, Plan, Segments, between, index_type, offsets_of, ranges
from packtool.storage.names import SEGMENT
from packtool.storage.packed import PackedBucket, PackedDataset
from packtool.storage.segment_table import from_table


class StoredPlan(Plan):
    """The units of one bucket, in stored order.

    Args:
        bucket: what holds the rows.
        atom_size: other atoms than the stored ones, for a stream in corpus order; None for the stored ones.
        tokens: tokens of that stream before padding; only used with `atom_size`.
        whole: read the whole segment table when segments are first asked for, as writing every row wants it; else the
            rows that are asked for, as training does.
    """

    def __init__(
        self, bucket: PackedBucket, atom_size: int | None = None, tokens: int = 0, *, whole: bool = True
    ) -> None:
        entry, length = bucket.entry, bucket.sequence_length
        if atom_size is None:
            super().__init__(
                sequence_length=length,
                unit=entry.unit,
                units=entry.units,
                atom_units=entry.atom_units or 1,
                atom_offsets=bucket.atom_offsets(),
                last_atom_stays=entry.last_atom_stays,
            )
        else:
            unit = min(atom_size, length)
            super().__init__(
                sequence_length=length,
                unit=unit,
                units=-(-tokens // unit),
                atom_units=atom_size // unit,
                last_atom_stays=tokens % atom_size > 0,
            )
        self.bucket = bucket
        self._whole = whole
        self._given = atom_size, tokens
        self._arrays = IN_MEMORY

    def __reduce__(self) -> tuple[Any, ...]:
        return StoredPlan, (self.bucket, *self._given), {"_whole": self._whole}

    @property
    def has_segments(self) -> bool:
        """False after ``--no-segments``: then nobody knows them."""
        return self.bucket.has_segments

    def prepare(self, arrays: Arrays) -> None:
        """Read what `segments` needs, into these arrays."""
        self._arrays = arrays
        self.segments(np.empty(0, np.int64))

    @cached_property
    def _table(self) -> npt.NDArray[Any]:
        table, at = self._arrays.empty(sum(len(part) for part, _ in self.bucket.tables()), SEGMENT), 0
        for part, _ in self.bucket.checked_tables():
            table[at : at + len(part)] = part
            at += len(part)
        return table

    @cached_property
    def _row_offsets(self) -> I64:
        parts = [np.zeros(1, np.int64), *(offsets[1:] for _, offsets in self.bucket.tables())]
        before = offsets_of(np.array([len(table) for table, _ in self.bucket.tables()], np.int64))
        return self._arrays.concatenated(parts, np.int64, [0, *before[:-1].tolist()])

    @cached_property
    def _begins(self) -> I64:
        """Where each segment begins, in tokens from the first row's first; then where the last one ends."""
        return offsets_of(self._table["length"], self._arrays)

    @cached_property
    def _firsts(self) -> Ints:
        """The segment that each unit begins in; then the number of segments."""
        return self._arrays.filled(
            self.units + 1,
            index_type(len(self._begins)),
            lambda a, b: np.searchsorted(self._begins, np.arange(a, b) * self.unit, side="right") - 1,
        )

    def tokens(self, units: Ints, column: PackedBucket | None = None) -> npt.NDArray[Any]:
        """Copy the tokens of these units, (units, unit), or another column of the same rows."""
        row, part = np.divmod(np.asarray(units, np.int64), self.sequence_length // self.unit)
        return (column or self.bucket).parts(row, part, self.unit)

    def segments(self, units: Ints) -> Segments:
        if not self._whole:
            row, part = np.divmod(np.asarray(units, np.int64), self.sequence_length // self.unit)
            return self._units_of(self.bucket.segments_of(row), np.arange(len(row)), part)
        if self.unit < self.sequence_length:
            begin = np.asarray(units, np.int64) * self.unit
            first, last = self._firsts[units].astype(np.int64), self._firsts[np.asarray(units) + 1].astype(np.int64)
            counts = last - first + (self._begins[last] < begin + self.unit)
            offsets = offsets_of(counts)
            index = ranges(first, counts, offsets)
            segments = from_table(np.take(self._table, index), offsets)
            ahead = np.repeat(begin, counts) - self._begins[index]
            skipped = np.maximum(ahead, 0)
            return cut(segments, skipped, np.minimum(ahead + self.unit, segments.length) - skipped)
        first = self._row_offsets[units]
        counts = self._row_offsets[np.asarray(units) + 1] - first
        offsets = offsets_of(counts)
        return from_table(np.take(self._table, ranges(first, counts, offsets)), offsets)

    def scan(self, first: int, last: int) -> Segments:
        """Read the segments of units ``first:last`` from their part of the table alone."""
        per_row = self.sequence_length // self.unit
        row = first // per_row
        rows = self.bucket.segments(row, -(-last // per_row))
        inside, part = np.divmod(np.arange(first, last) - row * per_row, per_row)
        return self._units_of(rows, inside, part)

    def _units_of(self, rows: Segments, row: I64, part: I64) -> Segments:
        """Return the segments of parts of rows, one unit each."""
        if self.unit == self.sequence_length:
            return rows
        begin = row * self.sequence_length + part * self.unit
        at, skipped, kept, offsets = between(offsets_of(rows.length), begin, begin + self.unit)
        return cut(rows.at(at, offsets), skipped, kept)


def cut(segments: Segments, skipped: I64, length: I64) -> Segments:
    """Cut segments to those without their first `skipped` tokens, and of the given length from there."""
    return Segments(
        segments.document,
        segments.start + np.where(segments.document >= 0, skipped, 0),
        length,
        np.clip(segments.repeated - skipped, 0, length),
        segments.offsets,
    )


def stored_plans(dataset: PackedDataset, atom_size: int | None = None, *, whole: bool = True) -> list[StoredPlan]:
    """Return the plan of each bucket.

    Args:
        atom_size: other atoms than the stored ones. The caller has made sure that the dataset is one stream in corpus
            order.
        whole: as of `StoredPlan`.
    """
    if atom_size is None or atom_size == stored_atom_size(dataset):
        return [StoredPlan(bucket, whole=whole) for bucket in dataset.buckets]
    tokens = dataset.manifest.ledger.output - dataset.manifest.ledger.padding
    return [StoredPlan(bucket, atom_size, tokens, whole=whole) for bucket in dataset.buckets]


def stored_atom_size(dataset: PackedDataset) -> int | None:
    """Return the tokens in an atom, at most; None if atoms are rows of several lengths."""
    if len(dataset.buckets) > 1 or dataset.manifest.buckets[0].directory:
        return None
    atom_size: int = dataset.manifest.options.get("atom_size", dataset.buckets[0].sequence_length)
    return atom_size
