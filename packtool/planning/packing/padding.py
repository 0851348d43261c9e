"""Padding: every document on its own, cut into atoms that each end with EOS; the tail is filled up with padding.

No document shares an atom with another; short documents make much padding.
Paper: Optimizing Packing and Shuffling Strategies for Enhanced Performance in Generative Language Models (A.3, A.10).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from packtool.errors import UsageError
from packtool.planning.arrays import IN_MEMORY, Arrays, blocks
from packtool.planning.packing.plans import INDEXED_UNIT
from packtool.planning.packing.strategy import PackOptions, Strategy
from packtool.planning.plan import I64, INSERTED_EOS, Ints, Plan, Segments, groups_of, index_type, offsets_of


class PaddingPlan(Plan):
    """Atoms of A - 1 text tokens and an EOS, then a tail without EOS, cut into units of min(A, L) tokens.

    A full atom that ends where the text ends takes the stored EOS; other full atoms take an inserted one. Segments are
    worked out on demand from the number of units before each document.

    >>> plan = PaddingPlan(np.array([131]), sequence_length=64, atom_size=64)
    >>> segments = plan.segments(np.arange(plan.units))
    >>> segments.document, segments.start, segments.length
    (array([ 0, -2,  0, -2,  0]), array([  0,   0,  63,   0, 126]), array([63,  1, 63,  1,  4]))
    """

    def __init__(
        self, lengths: Ints, sequence_length: int, atom_size: int, remainder: str = "pad", arrays: Arrays = IN_MEMORY
    ) -> None:
        unit = min(atom_size, sequence_length)
        atom_units = atom_size // unit

        kind = np.promote_types(lengths.dtype, np.uint32)

        def atoms_of(first: int, last: int) -> tuple[Ints, Ints]:
            """Count the full atoms of documents, and the units of their tails."""
            text = lengths[first:last].astype(kind, copy=False) - 1
            full = text // (atom_size - 1)
            return full, (text - full * (atom_size - 1) + unit - 1) // unit

        tails = ends_full = full_atoms = 0

        def units_of(first: int, last: int) -> Ints:
            """Count the units of documents, and the totals of the plan in the same pass."""
            nonlocal tails, ends_full, full_atoms
            full, tail_units = atoms_of(first, last)
            full_atoms += int(full.sum())
            ends_full += int(np.count_nonzero((tail_units == 0) & (full > 0)))
            tails += int(np.count_nonzero(tail_units))
            return full * atom_units + tail_units

        self._lengths = lengths
        self._atom_size = atom_size
        self._unit = unit
        self._before = arrays.totals(len(lengths), units_of)
        units = int(self._before[-1])
        self._documents: Ints | None = None
        if unit >= INDEXED_UNIT:
            self._documents = arrays.filled(units, index_type(len(lengths)), lambda a, b: groups_of(self._before, a, b))
        kept = units if remainder == "pad" else units - units % (sequence_length // unit)
        lost = self.segments(np.arange(kept, units))
        stored = lost.document >= 0
        omitted = int((lost.start + lost.length == lengths[np.maximum(lost.document, 0)])[stored].sum())
        super().__init__(
            sequence_length=sequence_length,
            unit=unit,
            units=kept,
            dropped=int(lost.length[stored].sum()) - omitted,
            eos_omitted=len(lengths) - ends_full + omitted,
            eos_inserted=full_atoms - ends_full - int((~stored).sum()),
            atom_offsets=None
            if atom_units == 1
            else _atom_offsets(atoms_of, len(lengths), full_atoms + tails, atom_units, arrays),
        )

    def segments(self, units: Ints) -> Segments:
        units = np.asarray(units, np.int64)
        if self._documents is None:
            document = np.searchsorted(self._before, units, side="right") - 1
        else:
            document = self._documents.take(units).astype(np.int64)
        text = self._lengths[document].astype(np.int64) - 1
        atom, part = np.divmod(units - self._before[document], self._atom_size // self._unit)
        begin = atom * (self._atom_size - 1)
        words = np.minimum(text - begin, self._atom_size - 1)
        eos = (words == self._atom_size - 1) & ((part + 1) * self._unit == self._atom_size)
        stored = eos & (begin + words == text)
        inserted = eos & ~stored
        length = np.minimum(words - part * self._unit, self._unit) + stored
        # A unit is a segment of its document, an inserted EOS, or both, in this order.
        offsets = offsets_of((length > 0).astype(np.int64) + inserted)
        kept = np.flatnonzero(length > 0)
        at = offsets[kept]
        total = int(offsets[-1])
        zeros = np.zeros(total, np.int64)
        columns = Segments(np.full(total, INSERTED_EOS), zeros.copy(), np.ones(total, np.int64), zeros, offsets)
        columns.document[at] = document[kept]
        columns.start[at] = (begin + part * self._unit)[kept]
        columns.length[at] = length[kept]
        return columns


def _atom_offsets(
    atoms_of: Callable[[int, int], tuple[Ints, Ints]], documents: int, atoms: int, full_units: int, arrays: Arrays
) -> I64:
    """Return the first units of atoms, a document's full atoms before its tail; last, the number of units."""
    out = arrays.empty(atoms + 1, np.int64)
    out[0] = at = 0
    for first, last in blocks(documents):
        full, tail_units = atoms_of(first, last)
        offsets = offsets_of(full + (tail_units > 0))
        units = out[at + 1 : at + 1 + int(offsets[-1])]
        units[:] = full_units
        tails = np.flatnonzero(tail_units)
        units[offsets[tails + 1] - 1] = tail_units[tails]
        at += len(units)
    return np.cumsum(out, out=out)


def plan(lengths: Ints, options: PackOptions, arrays: Arrays = IN_MEMORY) -> list[Plan]:
    """Give each document its own atoms.

    Raises:
        UsageError: atoms of one token.
    """
    if options.atom < 2:
        raise UsageError(
            "bad-atom-size",
            "an atom of padding holds text and an EOS, so at least 2 tokens",
            remedy="give a larger atom size",
            where="--atom-size",
        )
    return [PaddingPlan(lengths, options.row_length, options.atom, options.remainder, arrays)]


STRATEGY = Strategy(
    name="padding",
    summary="cut each document on its own and fill up with padding",
    recommended=7,
    windowed=False,
    plan=plan,
    whole=True,
    rounds=False,
    keeps_eos=False,
    neighbours=True,
)
