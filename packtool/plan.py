"""The plan: which piece of which document goes where, before any token moves.

A strategy turns document lengths into a `Plan`. A plan is a list of *units* of equal size (`unit` tokens, the smaller
of atom size and sequence length); consecutive units form *atoms*, the things a shuffle permutes; units in their final
order form *rows* of `sequence_length` tokens. What a unit does not fill is padding, which no plan needs to mention.

    lengths ─strategy─▶ Plan (units, atoms) ─permutation─▶ order ─layout─▶ rows of segments ─gather─▶ tokens
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

I64: TypeAlias = npt.NDArray[np.int64]
Ints: TypeAlias = npt.NDArray[np.integer]

PADDING = -1
"""The `document` of a segment of padding tokens."""
INSERTED_EOS = -2
"""The `document` of an EOS token that no stored document holds: the strategy put it there."""


@dataclass(frozen=True, slots=True)
class Segments:
    """Pieces of documents, group by group (a group is a unit or a row), as columns of equal length.

    Attributes:
        document: global document number, or `PADDING`, or `INSERTED_EOS`.
        start: first token of the piece, counted from the document's first.
        length: tokens in the piece.
        repeated: how many leading tokens of the piece an earlier row already has.
        offsets: groups + 1; group i holds pieces ``offsets[i]:offsets[i + 1]``.
    """

    document: I64
    start: I64
    length: I64
    repeated: I64
    offsets: I64

    def __len__(self) -> int:
        return len(self.document)

    @property
    def groups(self) -> int:
        return len(self.offsets) - 1

    def group_of(self) -> I64:
        """The group of each piece."""
        return np.repeat(np.arange(self.groups), np.diff(self.offsets))

    def tokens(self) -> I64:
        """Tokens in each group."""
        ends = offsets_of(self.length)
        return ends[self.offsets[1:]] - ends[self.offsets[:-1]]

    def __getitem__(self, groups: slice) -> Segments:
        """The pieces of a range of groups."""
        first, last, step = groups.indices(self.groups)
        if step != 1:
            raise ValueError("segments are sliced by consecutive groups")
        a, b = self.offsets[first], self.offsets[max(first, last)]
        return Segments(
            self.document[a:b],
            self.start[a:b],
            self.length[a:b],
            self.repeated[a:b],
            self.offsets[first : max(first, last) + 1] - a,
        )


class Plan(ABC):
    """What a strategy decided: units of tokens, and which of them move together.

    Attributes:
        sequence_length: tokens in a row.
        unit: tokens in a unit; divides `sequence_length`.
        units: number of units.
        atom_units: units in an atom, where all atoms are equal (the last may be shorter).
        atom_offsets: first unit of each atom, then the number of units, where atoms differ; else None.
        last_atom_stays: the last atom is incomplete, so a shuffle leaves it at the end.
        dropped: text tokens (not EOS) of the input that no unit holds.
        eos_omitted: stored EOS tokens that no unit holds.
        least_rows: a proof: no packing of the same pieces has fewer rows; None where nothing is proven.
        eos_inserted: EOS tokens the units hold that no document has.
    """

    def __init__(
        self,
        *,
        sequence_length: int,
        unit: int,
        units: int,
        dropped: int = 0,
        eos_omitted: int = 0,
        eos_inserted: int = 0,
        atom_units: int = 1,
        atom_offsets: I64 | None = None,
        last_atom_stays: bool = False,
    ) -> None:
        self.sequence_length = sequence_length
        self.unit = unit
        self.units = units
        self.dropped = dropped
        self.eos_omitted = eos_omitted
        self.least_rows: int | None = None
        self.eos_inserted = eos_inserted
        self.atom_units = atom_units
        self.atom_offsets = atom_offsets
        self.last_atom_stays = last_atom_stays

    @property
    def rows(self) -> int:
        return -(-self.units * self.unit // self.sequence_length)

    @property
    def atoms(self) -> int:
        if self.atom_offsets is not None:
            return len(self.atom_offsets) - 1
        return -(-self.units // self.atom_units)

    @property
    def movable_atoms(self) -> int:
        """Atoms that a shuffle may move."""
        return self.atoms - self.last_atom_stays

    @abstractmethod
    def segments(self, units: Ints) -> Segments:
        """The pieces in the given units, in the order given; a unit's pieces may fall short of `unit` tokens."""


class BinPlan(Plan):
    """A plan of explicit bins: each row's pieces are listed one by one.

    Args:
        sequence_length: tokens in a row.
        lengths: length of each document with its EOS.
        row_offsets: rows + 1; row i holds pieces ``row_offsets[i]:row_offsets[i + 1]``.
        document: document of each piece.
        start: first token of each piece, or None where every piece begins its document.
        length: tokens of each piece, or None where every piece runs to the end of its document.
        repeated: leading tokens of each piece that an earlier row has, or None where there are none.

    >>> plan = BinPlan(8, lengths=np.array([5, 3, 6]), row_offsets=np.array([0, 2, 3]), document=np.array([0, 1, 2]))
    >>> plan.segments(np.array([1, 0])).document
    array([2, 0, 1])
    """

    def __init__(
        self,
        sequence_length: int,
        *,
        lengths: Ints,
        row_offsets: Ints,
        document: Ints,
        start: Ints | None = None,
        length: Ints | None = None,
        repeated: Ints | None = None,
        dropped: int = 0,
        eos_omitted: int = 0,
    ) -> None:
        super().__init__(
            sequence_length=sequence_length,
            unit=sequence_length,
            units=len(row_offsets) - 1,
            dropped=dropped,
            eos_omitted=eos_omitted,
        )
        self._lengths = lengths
        self._row_offsets = row_offsets
        self._document = document
        self._start = start
        self._length = length
        self._repeated = repeated

    def segments(self, units: Ints) -> Segments:
        first = self._row_offsets[units].astype(np.int64)
        counts = self._row_offsets[np.asarray(units) + 1].astype(np.int64) - first
        offsets = offsets_of(counts)
        piece = ranges(first, counts, offsets)
        document = self._document[piece].astype(np.int64)
        start = np.zeros_like(document) if self._start is None else self._start[piece].astype(np.int64)
        if self._length is None:
            length = self._lengths[document].astype(np.int64) - start
        else:
            length = self._length[piece].astype(np.int64)
        repeated = np.zeros_like(document) if self._repeated is None else self._repeated[piece].astype(np.int64)
        return Segments(document, start, length, repeated, offsets)


def offsets_of(counts: Ints) -> I64:
    """Running totals from 0: where each group begins, then the total.

    >>> offsets_of(np.array([2, 0, 3]))
    array([0, 2, 2, 5])
    """
    offsets = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=offsets[1:])
    return offsets


def ranges(first: I64, counts: I64, offsets: I64) -> I64:
    """Consecutive integers from each `first`, `counts` of them, joined; `offsets` is ``offsets_of(counts)``.

    >>> ranges(np.array([5, 0]), np.array([2, 3]), np.array([0, 2, 5]))
    array([5, 6, 0, 1, 2])
    """
    return np.arange(offsets[-1]) + np.repeat(first - offsets[:-1], counts)


def between(ends: I64, begin: I64, end: I64) -> tuple[I64, I64, I64, I64]:
    """What lies in stretches ``begin:end`` of a stream of consecutive things, such as documents.

    Args:
        ends: things + 1 offsets of the things in the stream, as of `offsets_of` their lengths.

    Returns:
        For each piece: its thing, its start in it, its length; and the stretches + 1 offsets of each one's pieces.

    >>> one = np.array
    >>> between(one([0, 3, 9]), one([2, 4]), one([5, 6]))
    (array([0, 1, 1]), array([2, 0, 1]), array([1, 2, 2]), array([0, 2, 3]))
    """
    first = np.searchsorted(ends, begin, side="right") - 1
    counts = np.searchsorted(ends, end, side="left") - first
    offsets = offsets_of(counts)
    thing = ranges(first, counts, offsets)
    origin = ends[thing]
    start = np.maximum(np.repeat(begin, counts) - origin, 0)
    length = np.minimum(np.repeat(end, counts), ends[thing + 1]) - origin - start
    return thing, start, length, offsets
