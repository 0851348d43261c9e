"""Lay out rows from a plan and an order: the last pure step before tokens move.

Units, in their final order, are joined to rows; what a unit or the last row lacks becomes padding; segments that
continue each other inside a row become one, so that the segment table depends on the rows alone and not on how they
were made.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from packtool.planning.arrays import IN_MEMORY, Arrays
from packtool.planning.plan import I64, PADDING, Ints, Plan, Segments, fill_up, offsets_of, pad

BATCH_TOKENS = 1 << 22
"""Tokens that are laid out at a time: large enough for vectorised work, small enough to stay near the cache."""


class Layout:
    """The rows of a plan under an order of its atoms.

    Args:
        plan: of a strategy.
        order: number of the movable atom at each place of the new order (a permutation); None for the plan's order. An
            incomplete last atom is not in it, and stays last.
        arrays: allocates the arrays that are as long as the order.
    """

    def __init__(self, plan: Plan, order: Ints | None = None, arrays: Arrays = IN_MEMORY) -> None:
        self.plan = plan
        self.order = order
        self.rows = plan.rows
        self._places: I64 | None = None
        """The first unit of each atom in the new order, if atoms differ in size."""
        if order is not None and plan.atom_offsets is not None:
            atoms = len(order) + plan.last_atom_stays
            self._places = arrays.totals(atoms, lambda a, b: self._sizes(self._atoms(np.arange(a, b))))

    def units(self, places: I64) -> I64:
        """Return the plan's units at these places of the new order."""
        if self.order is None:
            return places
        if self._places is None:
            if self.plan.atom_units == 1:
                return self._atoms(places)
            slot, inside = np.divmod(places, self.plan.atom_units)
            return self._atoms(slot) * self.plan.atom_units + inside
        assert self.plan.atom_offsets is not None
        slot = np.searchsorted(self._places, places, side="right") - 1
        return self.plan.atom_offsets[self._atoms(slot)] + places - self._places[slot]

    def _atoms(self, places: I64) -> I64:
        """Return the plan's atoms at these places of the new order; the incomplete last atom is at its own."""
        assert self.order is not None
        if not self.plan.last_atom_stays:
            return self.order[places].astype(np.int64)
        atoms = places.copy()
        moved = places < len(self.order)
        atoms[moved] = self.order[places[moved]]
        return atoms

    def _sizes(self, atoms: I64) -> I64:
        """Return the units of atoms that differ in size."""
        offsets = self.plan.atom_offsets
        assert offsets is not None
        return offsets[atoms + 1] - offsets[atoms]

    def atoms(self, first_row: int, last_row: int) -> I64 | None:
        """Return row offsets, from `first_row`, of the atoms that begin in these rows; None if atoms do not vary."""
        offsets = self.plan.atom_offsets if self.order is None else self._places
        if offsets is None or self.plan.atom_offsets is None:
            return None
        a, b = np.searchsorted(offsets[:-1], [first_row, last_row])
        return offsets[a:b] - first_row

    def segments(self, first_row: int, last_row: int) -> Segments:
        """Return the segments of rows ``first_row:last_row``, padding included: each row sums to `sequence_length`."""
        units = self.units(np.arange(*unit_range(self.plan, first_row, last_row)))
        return join(pad(self.plan.segments(units), self.plan.unit), self.plan.unit, self.plan.sequence_length)

    def units_of(self, rows: I64) -> tuple[I64, npt.NDArray[np.bool_]]:
        """Return the plan's units in these rows, and which places of the rows have one: the last row may lack some."""
        per_row = self.plan.sequence_length // self.plan.unit
        places = (rows[:, None] * per_row + np.arange(per_row)).reshape(-1)
        there = places < self.plan.units
        return self.units(places[there]), there

    def segments_of(self, rows: I64) -> Segments:
        """Return the segments of these rows, in the order given, as `segments` does."""
        units, there = self.units_of(rows)
        segments = self.plan.segments(units)
        counts = np.zeros(len(there), np.int64)
        counts[there] = np.diff(segments.offsets)
        whole = Segments(segments.document, segments.start, segments.length, segments.repeated, offsets_of(counts))
        return join(pad(whole, self.plan.unit), self.plan.unit, self.plan.sequence_length)

    def steps(self, first_row: int, last_row: int, times: int = 1) -> Iterator[tuple[int, int]]:
        """Yield ranges of rows of about `BATCH_TOKENS` tokens, or a multiple of that."""
        step = max(1, times * BATCH_TOKENS // self.plan.sequence_length)
        for row in range(first_row, last_row, step):
            yield row, min(row + step, last_row)


def unit_range(plan: Plan, first_row: int, last_row: int) -> tuple[int, int]:
    """Return the places ``first:last`` of the units in rows ``first_row:last_row``; the last row may lack units."""
    per_row = plan.sequence_length // plan.unit
    return min(first_row * per_row, plan.units), min(last_row * per_row, plan.units)


def join(units: Segments, unit: int, sequence_length: int) -> Segments:
    """Join `sequence_length` / `unit` units into each row, pad the last row, merge what continues.

    Args:
        units: their segments, padding included.

    >>> one = np.array
    >>> units = pad(Segments(one([4, 4]), one([0, 3]), one([3, 2]), one([0, 0]), one([0, 1, 2])), 3)
    >>> rows = join(units, unit=3, sequence_length=6)
    >>> rows.document, rows.length
    (array([ 4, -1]), array([5, 1]))
    """
    per_row = sequence_length // unit
    lacking = -units.groups % per_row
    if lacking:
        missing = np.zeros(units.groups, np.int64)
        missing[-1] = lacking * unit
        units = fill_up(units, missing)
    row_offsets = np.append(units.offsets[:-1][::per_row], units.offsets[-1])
    return merge(Segments(units.document, units.start, units.length, units.repeated, row_offsets))


def merge(rows: Segments) -> Segments:
    """Merge a segment of a row that continues the one before it into one; consecutive padding, too.

    So the segment table does not depend on the atoms that rows were made of.
    """
    if len(rows) < 2:
        return rows
    document, start, length = rows.document, rows.start, rows.length
    again = np.flatnonzero(document[1:] == document[:-1]) + 1  # empty for most rows
    if not len(again):
        return rows
    follows = (document[again] >= 0) & (start[again] == start[again - 1] + length[again - 1])
    heads = np.ones(len(rows), np.bool_)
    heads[again[follows & (rows.repeated[again] == 0) | (document[again] == PADDING)]] = False
    heads[rows.offsets[:-1][np.diff(rows.offsets) > 0]] = True
    head = np.flatnonzero(heads)
    if len(head) == len(rows):
        return rows
    return replace(rows.where(heads), length=np.add.reduceat(length, head))
