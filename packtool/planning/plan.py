"""The plan: which piece of which document goes where, before any token moves.

A strategy turns document lengths into a `Plan`. A plan is a list of *units* of equal size (`unit` tokens, the smaller
of atom size and sequence length); consecutive units form *atoms*, the things a shuffle permutes; units in their final
order form *rows* of `sequence_length` tokens. What a unit does not fill is padding, which no plan needs to mention.

    lengths ─strategy─▶ Plan (units, atoms) ─permutation─▶ order ─layout─▶ rows of segments ─gather─▶ tokens
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

I64: TypeAlias = npt.NDArray[np.int64]
Ints: TypeAlias = npt.NDArray[np.integer]
Mask: TypeAlias = npt.NDArray[np.bool_]
"""A flag for each of some items: true selects the item."""

PADDING = -1
"""The `document` of a segment of padding tokens."""
INSERTED_EOS = -2
"""The `document` of an EOS token that no stored document holds: the strategy put it there."""


BATCH = np.dtype([("bucket", "<i8"), ("first_row", "<i8"), ("rows", "<i8")])
"""One batch: the sequence length that names its bucket, and a range of that bucket's rows."""


@dataclass(frozen=True, slots=True)
class Segments:
    """Segments, group by group (a group is a unit or a row), as columns of equal length.

    A segment is a piece of one document in one group: consecutive tokens of both.

    Attributes:
        document: global document number, or `PADDING`, or `INSERTED_EOS`.
        start: first token of the segment, counted from the document's first.
        length: tokens in the segment.
        repeated: how many leading tokens of the segment an earlier row already has.
        offsets: groups + 1; group i holds segments ``offsets[i]:offsets[i + 1]``.
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
        """Find the group of each segment."""
        return np.repeat(np.arange(self.groups), np.diff(self.offsets))

    def tokens(self) -> I64:
        """Count the tokens in each group."""
        return np.diff(offsets_of(self.length).take(self.offsets))

    def __getitem__(self, groups: slice) -> Segments:
        """Slice the segments of a range of groups."""
        first, last, step = groups.indices(self.groups)
        if step != 1:
            raise ValueError("segments are sliced by consecutive groups")
        offsets = self.offsets[first : max(first, last) + 1]
        a, b = offsets[0], offsets[-1]
        return Segments(self.document[a:b], self.start[a:b], self.length[a:b], self.repeated[a:b], offsets - a)

    def at(self, places: I64, offsets: I64) -> Segments:
        """Select segments by their places, in groups that begin at these offsets."""
        return Segments(
            self.document.take(places),
            self.start.take(places),
            self.length.take(places),
            self.repeated.take(places),
            offsets,
        )

    def where(self, wanted: npt.NDArray[np.bool_]) -> Segments:
        """Select segments; groups keep their number."""
        # A group begins after as many selected segments as lie before it. Adding up booleans takes a little longer.
        wanted_before = offsets_of(wanted.view(np.uint8))
        return self.at(np.flatnonzero(wanted), wanted_before.take(self.offsets))

    @classmethod
    def concatenate(cls, parts: Sequence[Segments]) -> Segments:
        """Concatenate the groups of several."""
        columns = [(part.document, part.start, part.length, part.repeated, np.diff(part.offsets)) for part in parts]
        document, start, length, repeated, counts = map(np.concatenate, zip(*columns, strict=True))
        return cls(document, start, length, repeated, offsets_of(counts))


@dataclass(frozen=True, kw_only=True, eq=False)
class Plan(ABC):
    """The decision of a strategy: units of tokens, and which of them move together. It is immutable.

    Attributes:
        sequence_length: tokens in a row.
        unit: tokens in a unit; divides `sequence_length`.
        units: number of units.
        atom_units: units in an atom, if all atoms are equal (the last may be shorter).
        atom_offsets: first unit of each atom, then the number of units, if atoms differ; otherwise None.
        last_atom_stays: the last atom is incomplete, so a shuffle leaves it at the end.
        dropped: text tokens (not EOS) of the input that no unit holds.
        eos_omitted: stored EOS tokens that no unit holds.
        eos_inserted: EOS tokens the units hold that no document has.
        untrained: text tokens of pieces of cut conversations that no unit holds, since nothing in the pieces trains.
        stages: number of rows by the step that made them, for a strategy of several steps.
    """

    sequence_length: int
    unit: int
    units: int
    dropped: int = 0
    eos_omitted: int = 0
    eos_inserted: int = 0
    untrained: int = 0
    atom_units: int = 1
    atom_offsets: I64 | None = None
    last_atom_stays: bool = False
    stages: Mapping[str, int] = field(default_factory=dict)

    def facts(self) -> dict[str, Any]:
        """Return its fields by name, for a plan of the same units."""
        return {each.name: getattr(self, each.name) for each in fields(Plan)}

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
        """Return the segments of these units, in this order; they may have fewer than `unit` tokens in all."""


def stages_of(plans: Sequence[Plan]) -> dict[str, int]:
    """Add up the rows of plans by the step that made them."""
    stages: Counter[str] = Counter()
    for plan in plans:
        stages.update(plan.stages)
    return dict(stages)


def index_type(items: int) -> type[np.integer[Any]]:
    """Choose the smaller of uint32 and int64 that counts this many items."""
    return np.uint32 if items < 1 << 32 else np.int64


def offsets_of(counts: Ints) -> I64:
    """Add up running totals from 0: where each group begins, then the total; `Arrays.offsets` does so block by block.

    >>> offsets_of(np.array([2, 0, 3]))
    array([0, 2, 2, 5])
    """
    out = np.empty(len(counts) + 1, np.int64)
    out[0] = 0
    np.cumsum(counts, out=out[1:])
    return out


def groups_of(offsets: I64, first: int, last: int) -> I64:
    """Find the group of each item in ``first:last``: (last - first).

    Args:
        offsets: where each group begins, then the number of items, as `offsets_of` returns them.

    >>> groups_of(np.array([0, 2, 2, 5]), 1, 4)
    array([0, 2, 2])
    """
    first_group = np.searchsorted(offsets, first, side="right") - 1
    end_group = np.searchsorted(offsets, last)  # the one after the last group that has such an item
    bounds = np.clip(offsets[first_group : end_group + 1], first, last)
    return np.repeat(np.arange(first_group, end_group), bounds[1:] - bounds[:-1])


def ranges(first: I64, counts: I64, offsets: I64) -> I64:
    """List consecutive integers from each `first`, `counts` of them; `offsets` is ``offsets_of(counts)``.

    >>> ranges(np.array([5, 9, 0]), np.array([2, 0, 3]), np.array([0, 2, 2, 5]))
    array([5, 6, 0, 1, 2])
    """
    if not counts.all():
        some = np.flatnonzero(counts)
        first, counts, offsets = first[some], counts[some], np.append(offsets[some], offsets[-1])
    if not len(counts):
        return np.empty(0, np.int64)
    # A running total of steps: 1 inside a range, and at its end the difference to the first number of the next.
    steps = np.ones(int(offsets[-1]), np.int64)
    steps[0] = first[0]
    steps[offsets[1:-1]] = first[1:] - (first + counts)[:-1] + 1
    return np.cumsum(steps, out=steps)


def pad(units: Segments, unit: int) -> Segments:
    """Add a segment of padding at the end of each unit that falls short of `unit` tokens."""
    return fill_up(units, unit - units.tokens())


def fill_up(segments: Segments, missing: I64) -> Segments:
    """Add a segment of padding at the end of each group that misses tokens."""
    holes = np.flatnonzero(missing)
    if not len(holes):
        return segments
    offsets = offsets_of(np.diff(segments.offsets) + (missing > 0))
    at = offsets[holes + 1] - 1
    own = np.ones(offsets[-1], np.bool_)
    own[at] = False
    kept = np.flatnonzero(own)

    def column(values: I64, filler: int | I64) -> I64:
        out = np.empty(offsets[-1], np.int64)
        out[kept] = values
        out[at] = filler
        return out

    return Segments(
        column(segments.document, PADDING),
        column(segments.start, 0),
        column(segments.length, missing[holes]),
        column(segments.repeated, 0) if segments.repeated.any() else np.zeros(offsets[-1], np.int64),
        offsets,
    )


def cut_off(segments: Segments, *, rotated: bool) -> I64:
    """Find the first tokens of pieces that begin in the middle of a document, behind another document in their row.

    The token before such a piece in the row is not the token before it in its document, so it can't predict the piece.
    It is no target then if the dataset has a loss, or if a lane of the partial shuffle was rotated: its start follows
    its end.

    Args:
        rotated: also find pieces behind another part of the same document, as in a lane that lies inside one document.

    Returns:
        The places of these tokens in the rows laid end to end.
    """
    cut = (segments.document >= 0) & (segments.start > 0)
    apart = segments.document[1:] != segments.document[:-1]
    if rotated:
        apart |= segments.start[1:] != segments.start[:-1] + segments.length[:-1]
    cut[1:] &= apart
    first = segments.offsets[:-1]
    cut[first[first < len(cut)]] = False  # nothing in the row precedes its first piece
    return offsets_of(segments.length)[:-1][cut]


def between(ends: I64, begin: I64, end: I64) -> tuple[I64, I64, I64, I64]:
    """Find the items in stretches ``begin:end`` of a stream of consecutive items, such as documents.

    Args:
        ends: items + 1 offsets of the items in the stream: `offsets_of` their lengths.

    Returns:
        For each piece, its item, its start in the item and its length; then the stretches + 1 offsets of the pieces.

    >>> one = np.array
    >>> between(one([0, 3, 9]), one([2, 3]), one([5, 6]))
    (array([0, 1, 1]), array([2, 0, 0]), array([1, 2, 3]), array([0, 2, 3]))
    """
    first = np.searchsorted(ends, begin, side="right") - 1
    return pieces_of(ends, begin, end, first, np.searchsorted(ends, end, side="left") - first)


def pieces_of(ends: I64, begin: I64, end: I64, first: I64, counts: I64) -> tuple[I64, I64, I64, I64]:
    """Do what `between` does, given the `first` item of each stretch and the number of items that it touches."""
    offsets = offsets_of(counts)
    thing = ranges(first, counts, offsets)
    origin = ends.take(thing)
    start = np.maximum(np.repeat(begin, counts) - origin, 0)
    length = np.minimum(np.repeat(end, counts), ends.take(thing + 1)) - origin - start
    return thing, start, length, offsets


def distinct(values: npt.NDArray[Any]) -> I64:
    """Return the distinct values, ascending; `np.unique` would load all of NumPy's masked arrays first.

    >>> distinct(np.array([3, 1, 3]))
    array([1, 3])
    """
    ordered = np.sort(values)
    is_new = np.ones(len(ordered), np.bool_)
    is_new[1:] = ordered[1:] != ordered[:-1]
    once: I64 = ordered[is_new]
    return once


def by_value(values: I64) -> list[tuple[int, I64]]:
    """Group the places of equal values: each value, ascending, with its places.

    >>> by_value(np.array([3, 1, 3]))
    [(1, array([1])), (3, array([0, 2]))]
    """
    order = np.argsort(values, kind="stable")
    ordered = values.take(order)
    cuts = [0, *(np.flatnonzero(ordered[1:] != ordered[:-1]) + 1).tolist(), len(order)]
    groups = []
    for first, last in pairwise(cuts):
        if first < last:
            groups.append((int(ordered[first]), order[first:last]))
    return groups
