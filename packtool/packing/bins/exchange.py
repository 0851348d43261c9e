"""Groups of equal sums change places between rows, until rows are as mixed as random ones.

Rounds of three kinds follow each other:

- Random rounds cut rows at random, and deal the groups of each sum at random. A few of them spread lengths over rows,
  and reach about what they ever will.
- Balancing rounds take one group out of each row. Among the rows whose groups have one sum, the group with the longest
  segments goes to the row whose other segments are shortest, and so on: the assignment that leaves the least variance
  between rows.
- Parting rounds are random rounds among the rows of equal lengths but one, and four times as many others.

Rounds stop by a rule: random and parting ones when they no longer help much, balancing ones when the share of the
variance of log length that lies between rows is three fourths of that of random rows, or hardly falls any more. With
few segments a round brings little, since few groups have one sum, but costs little, too: then there are many more.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from packtool.packing.bins.groups import (
    HALF,
    LOW,
    RANDOM_BITS,
    U64,
    consecutive,
    cuts,
    deal_at_random,
    random,
    rank,
    running,
    somewhere_inside,
    sorted_by,
)
from packtool.plan import I64, equal_but_one, offsets_of

_PARTING_ROUNDS = 16
_WORTHWHILE = 4  # random rounds go on while each takes off at least a fourth of the variance between rows
_PARTED = 8  # parting rounds, while each parts an eighth of the rows that are alike
_FEW = 256  # and while more than one row in so many is
_OTHERS = 4  # rows that take part in a parting round, for each that is alike
_GOAL = (3, 4)  # of the variance between random rows: parting gives some of it back


class Rounds(NamedTuple):
    """How many rounds there are.

    Attributes:
        random: at least and at most.
        balancing: at most.
        stalled: balancing rounds go on while each takes off so small a part of the variance between rows: above what
            random rows have, and below.
    """

    random: tuple[int, int]
    balancing: int
    stalled: tuple[int, int]

    @classmethod
    def of(cls, segments: int) -> Rounds:
        """For so many segments, all in all."""
        return _MANY if segments < _SMALL else _FEW_ROUNDS


_SMALL = 1 << 18
_MANY = Rounds((24, 64), 400, (1024, 24))
_FEW_ROUNDS = Rounds((2, 10), 32, (40, 20))


class RowSegments(NamedTuple):
    """Rows of one or more segments.

    Attributes:
        weight: of each segment, row after row: its length in the upper 32 bits, its log in the lower ones. One running
            total adds up both; differences hold even where the total overflows.
        counts: segments in each row.
    """

    weight: U64
    counts: I64


def exchange(
    weight: U64, row: I64, rows: int, longest: U64, long_rows: int, rounds: Rounds, draws: np.random.Philox
) -> tuple[U64, I64]:
    """The weights of segments in new rows, each row in random order; and the row of each, ascending.

    Args:
        weight: of each segment.
        row: of each segment, ascending; some rows may have none.
        rows: how many there are.
        longest: the weight of a segment of L tokens.
        long_rows: rows of one such segment to reckon with.
        rounds: how many there are.
        draws: the source of all randomness.
    """
    scale = _Scale.of(weight, rows, longest, long_rows)
    counts = np.bincount(row, minlength=rows)
    number = np.flatnonzero(counts)
    spread = _spread(RowSegments(weight, counts[number]), scale, rounds, draws)
    # Balancing takes a group and leaves another, so it has no use for rows of one segment.
    several = spread.counts > 1
    inside = np.repeat(several, spread.counts)
    alone = spread.weight[~inside]
    there = scale.excess(alone, np.int64(1))
    scale = scale._replace(alone=scale.alone + int((there * there).sum()))
    mixed = _balance(RowSegments(spread.weight[inside], spread.counts[several]), scale, rounds, draws)
    mixed, numbers = _part(mixed, number[several], draws)
    weight = np.concatenate([mixed.weight, alone])
    row = np.concatenate([np.repeat(numbers, mixed.counts), number[~several]])
    order = sorted_by(row.astype(np.uint64), random(len(row), RANDOM_BITS, draws))
    return weight[order], row[order]


class _Scale(NamedTuple):
    """What rows are measured against, in steps of log length.

    Attributes:
        mean: of the logs of all segments.
        alone: variance between rows, times segments, that rows of one segment have.
        goal: the same of rows that are mixed well enough: less than random rows have on average.
    """

    mean: int
    alone: int
    goal: int

    @classmethod
    def of(cls, weight: U64, rows: int, longest: U64, long_rows: int) -> _Scale:
        """Of segments of these weights in so many rows, and rows of one segment of the longest weight."""
        log, of_long = (weight & LOW).view(np.int64), int((longest & LOW)[0])
        segments = len(log) + long_rows
        mean = (int(log.sum()) + long_rows * of_long) // max(1, segments)
        alone = long_rows * (of_long - mean) ** 2
        squares = int(((log - mean) ** 2).sum()) + alone
        random = squares * (rows + long_rows - 1) // max(1, segments - 1)
        return cls(mean, alone, random * _GOAL[0] // _GOAL[1])

    def excess(self, weight: U64, counts: I64 | np.int64) -> I64:
        """By how much the logs of some segments together exceed the mean."""
        return (weight & LOW).view(np.int64) - counts * self.mean

    def between(self, excess: I64, counts: I64) -> int:
        """The variance between rows, times segments."""
        return int((excess * excess // counts).sum()) + self.alone


def _spread(rows: RowSegments, scale: _Scale, rounds: Rounds, draws: np.random.Philox) -> RowSegments:
    """Random rounds."""
    least, most = rounds.random
    before = 0
    for number in range(most):
        ends, totals = offsets_of(rows.counts), running(rows.weight)
        now = scale.between(scale.excess(np.diff(totals[ends]), rows.counts), rows.counts)
        if number >= least and now * _WORTHWHILE > before * (_WORTHWHILE - 1):
            break
        before = now
        rows = _deal(rows, ends, totals, draws)
    return rows


def _deal(rows: RowSegments, ends: I64, totals: U64, draws: np.random.Philox) -> RowSegments:
    """Cut each row at one place and at a fourth of the others, deal groups of equal sums at random.

    Args:
        rows: the rows.
        ends: rows + 1 offsets of their segments.
        totals: running total of the weights.
        draws: the source of all randomness.
    """
    segments = len(rows.weight)
    begins = cuts(segments, draws)
    begins[ends[:-1]] = True
    begins[somewhere_inside(ends[:-1], rows.counts, draws)] = True
    start = np.flatnonzero(begins)
    bounds = np.append(start, segments)
    source = deal_at_random(np.diff(totals[bounds]) >> HALF, draws)
    counts = np.diff(bounds)[source]
    group = offsets_of(begins.view(np.uint8))[ends]
    dealt = offsets_of(counts)
    return RowSegments(rows.weight.take(consecutive(start[source], counts, dealt)), np.diff(dealt[group]))


def _balance(rows: RowSegments, scale: _Scale, rounds: Rounds, draws: np.random.Philox) -> RowSegments:
    """Balancing rounds: the first segments of each row, as many as drawn, go where they bring the mean nearest."""
    before = None
    for _ in range(rounds.balancing if len(rows.counts) > 1 else 0):
        offsets, totals = offsets_of(rows.counts), running(rows.weight)
        before_row = totals[offsets]
        now = scale.between(scale.excess(np.diff(before_row), rows.counts), rows.counts)
        stalled = rounds.stalled[now * _GOAL[0] <= scale.goal * _GOAL[1]]
        if now <= scale.goal or (before is not None and (before - now) * stalled < before):
            break
        before = now
        start, end = offsets[:-1], offsets[1:]
        cut = somewhere_inside(start, rows.counts, draws)
        count = cut - start
        at_cut = totals[cut]
        group, rest = at_cut - before_row[:-1], before_row[1:] - at_cut
        given = rank(scale.excess(group, count))
        wanted = rank(-scale.excess(rest, rows.counts - count))
        sums = group >> HALF
        source = np.empty_like(cut)
        source[sorted_by(sums, wanted)] = sorted_by(sums, given)
        # What stays comes first, so that the next round cuts elsewhere.
        first = np.stack([cut, start[source]], 1).ravel()
        taken = np.stack([end - cut, count[source]], 1).ravel()
        weight = rows.weight.take(consecutive(first, taken, offsets_of(taken)))
        rows = RowSegments(weight, rows.counts - count + count[source])
    return rows


def _part(rows: RowSegments, number: I64, draws: np.random.Philox) -> tuple[RowSegments, I64]:
    """Parting rounds, each among rows of the one before; rows come out in another order, with their numbers."""
    few, before = len(rows.counts) // _FEW, None
    done, numbers = [], []
    for _ in range(_PARTING_ROUNDS):
        several = np.flatnonzero(rows.counts > 2)
        alike = several[equal_but_one(rows.weight, offsets_of(rows.counts)[several], rows.counts[several])]
        if len(alike) <= few or (before is not None and len(alike) * _PARTED > before * (_PARTED - 1)):
            break
        before = len(alike)
        chosen = random(len(rows.counts), RANDOM_BITS, draws) * np.uint64(len(rows.counts))
        part = chosen < np.uint64(_OTHERS * len(alike) << RANDOM_BITS)
        part[alike] = True
        inside = np.repeat(part, rows.counts)
        done.append(RowSegments(rows.weight[~inside], rows.counts[~part]))
        numbers.append(number[~part])
        rows, number = RowSegments(rows.weight[inside], rows.counts[part]), number[part]
        rows = _deal(rows, offsets_of(rows.counts), running(rows.weight), draws)
    done.append(rows)
    numbers.append(number)
    weight, counts = (np.concatenate(column) for column in zip(*done, strict=True))
    return RowSegments(weight, counts), np.concatenate(numbers)
