"""Deal the samples of a blend to its sources: the source of sample n, and the number of its row in that source.

Samples are dealt in blocks. At the end of a block, every source has given as many rows as the integral of its share up
to there, as near as whole rows can: so errors do not add up, however small a share is. Inside a block the rows of a
source are spread evenly. The first rows of the sources are staggered, since sources with equal shares would come all at
once otherwise. A block of 4,096 is short enough to follow a ramp; only the counts of a block are kept.

    pieces ──integrals at the ends of blocks──▶ targets ──floor, largest remainders──▶ counts ──due times──▶ order
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from packtool.blending.schedule import Exhausted, Piece, Schedule, Shares
from packtool.planning.plan import I64, by_value, distinct, offsets_of

BLOCK = 4096
"""Samples in a block. If a piece of the schedule begins inside a block, the block is cut in two there."""
_GOLDEN = (math.sqrt(5) - 1) / 2
"""The golden ratio's fraction: the fractions of its multiples lie far apart, however many there are."""
_AT_ONCE = 1 << 12  # blocks whose targets are held
_NO_LIMIT = np.iinfo(np.int64).max


class _NoRoom(Exception):  # noqa: N818 - never seen outside
    """No source has rows left."""


class Dealing:
    """The source of each sample of a run, and the number of its row in that source.

    Args:
        schedule: of the run.
        base: the sample at which dealing begins, and the rows that each source has given before it, by name; None for
            the start of the run.
        gone: names of sources that give no more rows.

    Raises:
        Exhausted: no source has rows left.

    >>> from fractions import Fraction
    >>> from packtool.blending.schedule import Stage
    >>> stage = Stage(0, {"a": Fraction(7), "b": Fraction(3)})
    >>> dealing = Dealing(Schedule(("a", "b"), 10, (stage,), {}, frozenset()))
    >>> dealing.locate(np.arange(10))
    (array([1, 0, 0, 0, 1, 0, 0, 1, 0, 0]), array([0, 0, 1, 2, 1, 3, 4, 2, 5, 6]))
    """

    def __init__(
        self, schedule: Schedule, base: tuple[int, Mapping[str, int]] | None = None, gone: Collection[str] = ()
    ) -> None:
        pieces, names = schedule.pieces, schedule.names
        first, before = (0, {}) if base is None else base
        self.ends = _bounds(pieces, first, schedule.samples)  # (blocks + 1) first sample of each block; then the end
        self.given = np.empty((len(self.ends), len(names)), np.int64)  # (blocks + 1, sources) rows given before them
        self.given[0] = [before.get(name, 0) for name in names]
        limits = dict(schedule.limits)
        for name in gone:
            limits[name] = before.get(name, 0)  # all that such a source ever gives
        most = np.array([limits.get(name, _NO_LIMIT) for name in names])
        sizes = np.diff(self.ends).tolist()
        for block, target in enumerate(_targets(pieces, self.ends[1:])):
            # Targets count from the start of the run, so a block makes up for what the blocks before it rounded.
            given = self.given[block]
            try:
                self.given[block + 1] = given + _counts(target - given, sizes[block], most - given)
            except _NoRoom:
                raise Exhausted(self.ends[block]) from None
        self._pieces = pieces
        self._firsts = [piece.first for piece in pieces]
        self._last: tuple[int, I64, I64] | None = None  # what `_order` returned last, after the number of its block

    def before(self, sample: int) -> I64:
        """Count the rows that each source gives before a sample: (sources)."""
        block = int(np.searchsorted(self.ends, sample, side="right")) - 1
        rows: I64 = self.given[block].copy()
        if self.ends[block] < sample:
            source, _ = self._order(block)
            rows += np.bincount(source[: sample - int(self.ends[block])], minlength=len(rows))
        return rows

    def locate(self, samples: I64) -> tuple[I64, I64]:
        """Return the source of each sample, and the number of its row there, counted from 0 through all epochs."""
        blocks = np.searchsorted(self.ends, samples, side="right") - 1
        source, row = np.empty((2, len(samples)), np.int64)
        for block, which in by_value(blocks):
            inside = samples[which] - self.ends[block]
            sources, rows = self._order(block)
            source[which], row[which] = sources[inside], rows[inside]
        return source, row

    def sample_of(self, source: int, row: int) -> int | None:
        """Return the sample that is this row of a source; None if the run takes fewer rows of the source."""
        block = int(np.searchsorted(self.given[:, source], row, side="right")) - 1
        if block + 1 == len(self.ends):
            return None
        sources, rows = self._order(block)
        inside = np.flatnonzero((sources == source) & (rows == row))
        return int(self.ends[block] + inside[0])

    def next_block(self, sample: int) -> int:
        """Return the first sample at or after this one with which a block begins."""
        return int(self.ends[np.searchsorted(self.ends, sample)])

    def _order(self, block: int) -> tuple[I64, I64]:
        """Return the source of each sample of a block, and the number of its row in that source.

        Row j of the c rows of a source is due where (j + phase) / c of its share of the block have passed, and rows are
        sorted by that. `phase` is ½ for the first source that has rows in the block, and a golden ratio more for every
        further one:

            a, 3 rows, phase 0.50    due at 0.17  0.50  0.83
            b, 2 rows, phase 0.12    due at 0.06  0.56              the order is b a a b a

        The block is kept, since batch after batch lies in it.
        """
        if self._last is None or self._last[0] != block:
            counts = self.given[block + 1] - self.given[block]
            source = np.repeat(np.arange(len(counts)), counts)
            number = np.arange(len(source)) - np.repeat(offsets_of(counts)[:-1], counts)
            phase = (0.5 + _GOLDEN * (np.cumsum(counts > 0) - 1)) % 1
            due = (number + phase[source]) / counts[source]
            first, last = self.ends[block : block + 2].tolist()
            piece = self._pieces[bisect_right(self._firsts, first) - 1]
            if (piece.start != piece.end).any():
                due = _on_a_ramp(due, piece.at(first)[source], piece.at(last)[source])
            order = np.argsort(due, kind="stable")
            self._last = block, source[order], (number + self.given[block][source])[order]
        return self._last[1:]


def _bounds(pieces: Sequence[Piece], first: int, samples: int) -> I64:
    """Return the first samples of the blocks of ``first:samples``, and the sample after the last block: (blocks + 1).

    Blocks end at multiples of `BLOCK`, wherever dealing begins, and where a piece begins.
    """
    multiples = np.arange(first // BLOCK + 1, -(-samples // BLOCK)) * BLOCK
    bounds = [first, samples]
    for piece in pieces:
        start = math.ceil(piece.first)  # a piece may begin between two samples
        if first < start < samples:
            bounds.append(start)
    return distinct(np.append(bounds, multiples).astype(np.int64))


def _on_a_ramp(due: Shares, start: Shares, end: Shares) -> Shares:
    """Return the places in a block, from 0 to 1, at which parts of a source's rows have passed, on a ramp.

    A share that goes from `start` to `end` in a straight line has given the part `due` of its rows at the place x with
    start x + (end - start) x² / 2 = due (start + end) / 2. The root is written so that it also holds for start = end.

    Args:
        due: parts of the source's rows, from 0 to 1.
        start, end: the share of the source at the start and at the end of the block.

    >>> _on_a_ramp(np.array([0.25, 0.25]), np.array([1.0, 0.0]), np.array([1.0, 2.0])).tolist()
    [0.25, 0.5]
    """
    below = start + np.sqrt(start * start + due * (end * end - start * start))
    return np.where(below > 0, due * (start + end) / np.where(below > 0, below, 1), due)


def _targets(pieces: Sequence[Piece], ends: I64) -> Iterator[npt.NDArray[Any]]:
    """Yield, for the end of each block, the integrals of the sources' shares up to there: (sources)."""
    begun = np.zeros(len(pieces[0].start))  # the integrals up to the start of the piece
    for piece in pieces:
        first, last = np.searchsorted(ends, [piece.first, piece.last], side="right").tolist()
        for block in range(first, last, _AT_ONCE):
            yield from begun + piece.rows(ends[block : min(block + _AT_ONCE, last)])
        begun = begun + piece.rows(np.array([piece.last]))[0]


def _counts(due: npt.NDArray[Any], samples: int, room: I64) -> I64:
    """Divide the samples of a block among the sources: whole rows that are due, then one more by the largest rest.

    Args:
        due: rows that each source lacks to its target; negative for a source that is ahead of it.
        samples: number of samples in the block.
        room: rows that each source has left.

    >>> _counts(np.array([2.4, 1.9, 0.7]), 5, np.array([9, 9, 9]))
    array([2, 2, 1])
    >>> _counts(np.array([2.4, 1.9, 0.7]), 5, np.array([9, 1, 9]))
    array([3, 1, 1])
    >>> _counts(np.array([-1.2, 3.2, 3.0]), 5, np.array([9, 9, 9]))
    array([0, 3, 2])
    """
    counts: I64 = np.minimum(np.maximum(np.floor(due), 0), room).astype(np.int64)
    rest = samples - int(counts.sum())
    while rest > 0:
        has_room = counts < room
        owed = np.where(has_room, due - counts, -np.inf)
        most = min(rest, int(np.count_nonzero(has_room)))
        next_ones = np.argsort(-owed, kind="stable")[:most]  # of equal ones the first, so that the order is fixed
        if not len(next_ones):
            raise _NoRoom
        counts[next_ones] += 1
        rest -= len(next_ones)
    # Some source ran ahead, so more rows are due to the others than the block has: take them from the least owed.
    while rest < 0:
        counts[np.argmin(np.where(counts > 0, due - counts, np.inf))] -= 1
        rest += 1
    return counts
