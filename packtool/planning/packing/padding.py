"""Padding: every document on its own, cut into atoms that each end with EOS; the tail is filled up with padding.

No document shares an atom with another; short documents make much padding.
Paper: Optimizing Packing and Shuffling Strategies for Enhanced Performance in Generative Language Models (A.3, A.10).
"""

from __future__ import annotations

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
        atoms = _Atoms(lengths, atom_size, unit)
        self._lengths = lengths
        self._atom_size = atom_size
        self._unit = unit  # as `Plan.unit`, which is not set yet when `segments` is called below
        self._before = arrays.totals(len(lengths), atoms.counted_units)
        """Units before each document, then the number of units: (documents + 1)."""
        units = int(self._before[-1])
        self._documents: Ints | None = None
        if unit >= INDEXED_UNIT:
            self._documents = arrays.filled(units, index_type(len(lengths)), lambda a, b: groups_of(self._before, a, b))
        kept = units if remainder == "pad" else units - units % (sequence_length // unit)
        # What the units that fill no row would have held.
        lost = self.segments(np.arange(kept, units))
        stored = np.flatnonzero(lost.document >= 0)
        ends_document = (lost.start + lost.length)[stored] == lengths[lost.document[stored]]
        lost_eos = int(np.count_nonzero(ends_document))
        lost_insertions = len(lost) - len(stored)
        atom_offsets = None
        if atoms.full_units > 1:
            atom_offsets = _atom_offsets(atoms, len(lengths), arrays)
        super().__init__(
            sequence_length=sequence_length,
            unit=unit,
            units=kept,
            dropped=int(lost.length[stored].sum()) - lost_eos,
            eos_omitted=len(lengths) - atoms.ends_full + lost_eos,
            eos_inserted=atoms.full - atoms.ends_full - lost_insertions,
            atom_offsets=atom_offsets,
        )

    def segments(self, units: Ints) -> Segments:
        units = np.asarray(units, np.int64)
        if self._documents is None:
            document = np.searchsorted(self._before, units, side="right") - 1
        else:
            document = self._documents.take(units).astype(np.int64)
        text = self._lengths[document].astype(np.int64) - 1
        # Each unit is one part of one atom of its document.
        atom, part = np.divmod(units - self._before[document], self._atom_size // self._unit)
        atom_begin = atom * (self._atom_size - 1)
        atom_text = np.minimum(text - atom_begin, self._atom_size - 1)
        part_begin = part * self._unit
        has_eos = (atom_text == self._atom_size - 1) & (part_begin + self._unit == self._atom_size)
        stored_eos = has_eos & (atom_begin + atom_text == text)
        inserted_eos = has_eos & ~stored_eos
        length = np.minimum(atom_text - part_begin, self._unit) + stored_eos
        # A unit is a segment of its document, an inserted EOS, or both, in this order. First all are taken for inserted
        # EOS, then those of documents are filled in.
        offsets = offsets_of((length > 0).astype(np.int64) + inserted_eos)
        total = int(offsets[-1])
        zeros = np.zeros(total, np.int64)
        columns = Segments(np.full(total, INSERTED_EOS), zeros.copy(), np.ones(total, np.int64), zeros, offsets)
        of_document = np.flatnonzero(length > 0)
        at = offsets[of_document]
        columns.document[at] = document[of_document]
        columns.start[at] = (atom_begin + part_begin)[of_document]
        columns.length[at] = length[of_document]
        return columns


class _Atoms:
    """Counts the atoms of documents: full ones of A - 1 text tokens and an EOS, then a tail of the text that is left.

    Attributes:
        full_units: units in a full atom.
        full, tails: full atoms and tails of the documents counted so far.
        ends_full: documents counted so far whose text ends with a full atom, which takes their stored EOS.
    """

    def __init__(self, lengths: Ints, atom_size: int, unit: int) -> None:
        self.full_units = atom_size // unit
        self.full = self.tails = self.ends_full = 0
        self._lengths = lengths
        self._atom_text = atom_size - 1
        self._unit = unit
        # Lengths may have 16 bits, which sizes of atoms and units do not fit.
        self._kind = np.promote_types(lengths.dtype, np.uint32)

    def of(self, first: int, last: int) -> tuple[Ints, Ints]:
        """Return the full atoms of documents ``first:last``, and the units of their tails: (documents) each."""
        text = self._lengths[first:last].astype(self._kind, copy=False) - 1
        full = text // self._atom_text
        tail_text = text - full * self._atom_text
        return full, (tail_text + self._unit - 1) // self._unit

    def counted_units(self, first: int, last: int) -> Ints:
        """Return the units of documents ``first:last``, and count their atoms, in a single pass over the lengths."""
        full, tail_units = self.of(first, last)
        self.full += int(full.sum())
        self.tails += int(np.count_nonzero(tail_units))
        self.ends_full += int(np.count_nonzero((tail_units == 0) & (full > 0)))
        return full * self.full_units + tail_units


def _atom_offsets(atoms: _Atoms, documents: int, arrays: Arrays) -> I64:
    """Return the first units of atoms, a document's full atoms before its tail; last, the number of units.

    Args:
        atoms: all of them have been counted.
    """
    out = arrays.empty(atoms.full + atoms.tails + 1, np.int64)
    out[0] = at = 0
    for first, last in blocks(documents):
        full, tail_units = atoms.of(first, last)
        offsets = offsets_of(full + (tail_units > 0))
        units = out[at + 1 : at + 1 + int(offsets[-1])]
        units[:] = atoms.full_units
        tails = np.flatnonzero(tail_units)
        units[offsets[tails + 1] - 1] = tail_units[tails]
        at += len(units)
    return np.cumsum(out, out=out)


def check(options: PackOptions) -> None:
    """Refuse atoms of one token.

    Raises:
        UsageError: naming the atom size.
    """
    if options.atom < 2:
        what = "an atom of padding holds text and an EOS, so at least 2 tokens"
        raise UsageError("bad-atom-size", what, remedy="give a larger atom size", where="--atom-size")


def plan(lengths: Ints, options: PackOptions, arrays: Arrays = IN_MEMORY) -> list[Plan]:
    """Give each document its own atoms."""
    return [PaddingPlan(lengths, options.row_length, options.atom, options.remainder, arrays)]


STRATEGY = Strategy(
    name="padding",
    summary="cut each document on its own and fill up with padding",
    recommended=7,
    windowed=False,
    plan=plan,
    check=check,
    whole=True,
    rounds=False,
    keeps_eos=False,
    neighbours=True,
)
