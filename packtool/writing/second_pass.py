"""The second of two passes beyond memory: read and sort each partition, and join its units to rows.

Ties of keys are settled by index, because a partition holds its atoms in stored order.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np

from packtool.plan import I64, offsets_of, ranges
from packtool.shuffling.permutation import order_by
from packtool.storage.names import SEGMENT
from packtool.storage.segment_table import from_table
from packtool.writing import scratch
from packtool.writing.layout import unit_range
from packtool.writing.partitions import Partitions
from packtool.writing.planned_rows import Batch, PlannedRows, rows_of
from packtool.writing.scratch import Atoms, empty_atoms
from packtool.writing.source import Units


class PartitionedRows(PlannedRows):
    """Rows read from partitions on disk. A range of rows holds one partition at a time.

    Args:
        partitions: from the first pass.
        order: of the atoms, where they differ in size; else None.
    """

    def __init__(self, partitions: Partitions, order: I64 | None) -> None:
        super().__init__(partitions.plan, order)
        self._partitions = partitions
        tasks = [[each.atoms, each.units, each.segments] for each in partitions.tasks]
        self._counts = np.array(tasks, np.int64).sum(0).T
        self._first_units = offsets_of(self._counts[:, 1])
        self._units_left = self._counts[:, 1].copy()
        self._lock = threading.Lock()
        self._rooms: list[Atoms] = []
        """Room for the largest partition, not in use: new memory costs more than reading does."""

    def __reduce__(self) -> tuple[Any, ...]:
        return PartitionedRows, (self._partitions, self._order)

    def batches(self, first: int, last: int) -> Iterator[Batch]:
        reader = _Reader(self._partitions, self._counts, self._take_room())
        try:
            for a, b in self._layout.batches(first, last):
                yield rows_of(self.plan, self._read(reader, *unit_range(self.plan, a, b)), self._partitions.pad_id)
        finally:
            self._rooms.append(reader.room)

    def written(self, first: int, last: int) -> None:
        """Remove the partitions that no other row needs."""
        begin, end = unit_range(self.plan, first, last)
        touched = np.minimum(self._first_units[1:], end) - np.maximum(self._first_units[:-1], begin)
        with self._lock:
            self._units_left -= np.maximum(touched, 0)
            used_up = np.flatnonzero((touched > 0) & (self._units_left == 0))
        for number in used_up.tolist():
            self._partitions.remove(number)

    def _take_room(self) -> Atoms:
        try:
            return self._rooms.pop()
        except IndexError:
            return empty_atoms(*self._counts.max(0).tolist(), unit=self.plan.unit, dtype=self._partitions.dtype)

    def _read(self, reader: _Reader, first: int, last: int) -> Units:
        """Read the units at places ``first:last`` of the new order."""
        counts, tables, tokens = [np.empty(0, np.int64)], [np.empty(0, SEGMENT)], []
        number = int(np.searchsorted(self._first_units, first, side="right")) - 1
        while first < last:
            begin, end = int(self._first_units[number]), int(self._first_units[number + 1])
            stop = min(last, end)
            if first < stop:
                some = reader.partition(number)
                unit = some.units[first - begin : stop - begin]
                held = some.atoms.unit_segments[unit].astype(np.int64)
                counts.append(held)
                tables.append(np.take(some.atoms.segments, ranges(some.segment_offsets[unit], held, offsets_of(held))))
                tokens.append(np.take(some.atoms.tokens, unit, axis=0))
            first, number = stop, number + 1
        segments = None
        if self._partitions.with_segments:
            segments = from_table(np.concatenate(tables), offsets_of(np.concatenate(counts)))
        return segments, tokens[0] if len(tokens) == 1 else np.concatenate(tokens)


class _Reader:
    """Reads partitions one after the other, all into the same room."""

    def __init__(self, partitions: Partitions, counts: I64, room: Atoms) -> None:
        self.room = room
        self._partitions = partitions
        self._counts = counts
        self._number = -1
        self._held: _Sorted

    def partition(self, number: int) -> _Sorted:
        if number != self._number:
            atoms = self.room.head(*self._counts[number].tolist())
            scratch.read(self._partitions.files(number), atoms)
            self._held, self._number = _Sorted(atoms), number
        return self._held


class _Sorted:
    """A partition in memory.

    Attributes:
        atoms: as they are stored.
        units: their units in the new order.
        segment_offsets: where each stored unit's segments begin.
    """

    def __init__(self, atoms: Atoms) -> None:
        self.atoms = atoms
        order = order_by(atoms.keys)
        counts = atoms.units.astype(np.int64)
        self.units = ranges(offsets_of(counts)[order], counts[order], offsets_of(counts[order]))
        self.segment_offsets = offsets_of(atoms.unit_segments)
