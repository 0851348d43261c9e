"""Exchange groups of segments between rows, until the rows are as mixed as random ones.

How alike rows are is the share of the variance of log length that lies between them; the goal is what random rows have.
Rounds of four kinds follow each other:

- Random rounds cut rows at random, and deal the groups of each sum at random. A few of them spread lengths over rows,
  and reach about what they ever will.
- Balancing rounds take one group out of each row. Among the rows whose groups have one sum, the group with the longest
  segments goes to the row whose other segments are shortest, and so on: the assignment that leaves the least variance
  between rows.
- Parting rounds are random rounds among the rows of equal lengths but one, and four times as many others.
- Trading rounds are for few documents in long rows, where hardly two groups have one sum: groups of nearly equal sums
  change places where the padding of the row that receives the larger one has room for the difference.

Where asked, evening rounds follow the balancing ones: they even out what rows cost in attention within documents, which
grows with the squares of lengths.

Rounds stop by a rule: random and parting ones when they no longer help much, balancing and trading ones at the goal, or
where they hardly come nearer. With few segments a round brings little but costs little, too: then there are many more.
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
_NEAR = 32  # the goal is reached where no more than one part in so many is missing
_SHARE_BITS = 16
_IDLE = 8  # trading or evening rounds in a row that bring little
_EVENING_ROUNDS = 400
_EVENING = 4096  # evening rounds that take off no more than one part in so many of the variance of costs bring little
_COST_BITS = 20  # of the costs that this variance is reckoned with, so that the squares of all rows add up


class Rounds(NamedTuple):
    """How many rounds there are.

    Attributes:
        random: at least and at most.
        others: balancing rounds at most, and trading rounds.
        stalled: they go on while each takes off so small a part of the variance between rows.
        parting: trading rounds that part rows of equal lengths but one; many segments need none, having equal sums.
        near: rows are traded where more than one part in so many is missing to the goal.
    """

    random: tuple[int, int]
    others: int
    stalled: int
    parting: int
    near: int

    @classmethod
    def of(cls, segments: int) -> Rounds:
        """Choose them for so many segments, all in all."""
        return _MANY if segments < _SMALL else _FEW_ROUNDS


_SMALL = 1 << 18
_MANY = Rounds((24, 64), 400, 1024, 16, _NEAR)
_FEW_ROUNDS = Rounds((2, 10), 32, 40, 0, 8)


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
    weight: U64,
    row: I64,
    free: I64,
    longest: U64,
    long_rows: int,
    rounds: Rounds,
    draws: np.random.Philox,
    even_cost: bool = False,
) -> tuple[U64, I64]:
    """Exchange segments between rows, and put each row in random order.

    Args:
        weight: of each segment.
        row: of each segment, ascending; some rows may have none.
        free: for each row, how many tokens longer its segments may become together; −1 where they stay as long as they
            are.
        longest: the weight of a segment of L tokens.
        long_rows: rows of one such segment to reckon with.
        rounds: how many there are.
        draws: the source of all randomness.
        even_cost: even out what rows cost in attention, too.

    Returns:
        The weights of segments in new rows, and the row of each, ascending.
    """
    scale = _Scale.of(weight, len(free), longest, long_rows)
    counts = np.bincount(row, minlength=len(free))
    number = np.flatnonzero(counts)
    mixed = _spread(RowSegments(weight, counts[number]), scale, rounds, draws)
    # Balancing takes a group and leaves another, so it has no use for rows of one segment.
    several = mixed.counts > 1
    inside = np.repeat(several, mixed.counts)
    alone = mixed.weight[~inside]
    mixed = _balance(
        RowSegments(mixed.weight[inside], mixed.counts[several]),
        scale.with_alone(alone),
        rounds,
        draws,
    )
    if even_cost:
        mixed = even_costs(mixed, draws)
    mixed = RowSegments(
        np.concatenate([mixed.weight, alone]), np.concatenate([mixed.counts, np.ones(len(alone), np.int64)])
    )
    number = np.concatenate([number[several], number[~several]])
    mixed, number = _part(mixed, number, draws)
    mixed = _trade(mixed, free[number], scale, rounds, draws)
    row = np.repeat(number, mixed.counts)
    order = sorted_by(row.astype(np.uint64), random(len(row), RANDOM_BITS, draws))
    return mixed.weight[order], row[order]


class _Scale(NamedTuple):
    """What rows are measured against, in steps of log length.

    Attributes:
        mean: of the logs of all segments.
        alone: variance between rows, times segments, that rows of one segment have.
        goal: what random rows have on average.
    """

    mean: int
    alone: int
    goal: int

    @classmethod
    def of(cls, weight: U64, rows: int, longest: U64, long_rows: int) -> _Scale:
        """Measure segments of these weights in so many rows, and rows of one segment of the longest weight."""
        log, of_long = (weight & LOW).view(np.int64), int((longest & LOW)[0])
        segments = len(log) + long_rows
        mean = (int(log.sum()) + long_rows * of_long) // max(1, segments)
        alone = long_rows * (of_long - mean) ** 2
        squares = int(((log - mean) ** 2).sum()) + alone
        random = squares * (rows + long_rows - 1) // max(1, segments - 1)
        return cls(mean, alone, random)

    def with_alone(self, weight: U64) -> _Scale:
        """Add rows of a single segment to the account."""
        there = self.excess(weight, np.int64(1))
        return self._replace(alone=self.alone + int((there * there).sum()))

    def excess(self, weight: U64, counts: I64 | np.int64) -> I64:
        """Add up by how much the logs of some segments exceed the mean."""
        return (weight & LOW).view(np.int64) - counts * self.mean

    def reached(self, between: int, near: int = _NEAR) -> bool:
        """Return whether rows are as mixed as random ones."""
        return (between - self.goal) * near <= self.goal

    def between(self, excess: I64, counts: I64) -> int:
        """Compute the variance between rows, times segments."""
        return int((excess * excess // counts).sum()) + self.alone

    def between_rows(self, rows: RowSegments) -> int:
        """Compute the same of rows as they are."""
        return self.between(
            self.excess(np.diff(running(rows.weight)[offsets_of(rows.counts)]), rows.counts), rows.counts
        )


def _spread(rows: RowSegments, scale: _Scale, rounds: Rounds, draws: np.random.Philox) -> RowSegments:
    """Deal groups of equal sums at random, round after round."""
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
    begins[ends[:-1]] = True  # no group reaches over two rows
    begins[somewhere_inside(ends[:-1], rows.counts, draws)] = True
    start = np.flatnonzero(begins)
    bounds = np.append(start, segments)
    # Groups keep their place in the row; what a place receives has the sum of what it gives, so rows keep theirs.
    source = deal_at_random(np.diff(totals[bounds]) >> HALF, draws)
    counts = np.diff(bounds)[source]
    group = offsets_of(begins.view(np.uint8))[ends]
    dealt = offsets_of(counts)
    return RowSegments(rows.weight.take(consecutive(start[source], counts, dealt)), np.diff(dealt[group]))


def _balance(rows: RowSegments, scale: _Scale, rounds: Rounds, draws: np.random.Philox) -> RowSegments:
    """Give the first segments of each row, as many as drawn, to the row whose mean they bring nearest."""
    before = None
    for _ in range(rounds.others if len(rows.counts) > 1 else 0):
        offsets, totals = offsets_of(rows.counts), running(rows.weight)
        before_row = totals[offsets]
        excess = scale.excess(np.diff(before_row), rows.counts)
        now = scale.between(excess, rows.counts)
        if scale.reached(now) or (before is not None and (before - now) * rounds.stalled < before):
            break
        before = now
        start = offsets[:-1]
        cut = somewhere_inside(start, rows.counts, draws)
        count = cut - start
        at_cut = totals[cut]
        group, rest = at_cut - before_row[:-1], before_row[1:] - at_cut
        # A row is at the mean where the group it receives exceeds it by as much as the rest of the row falls short.
        given, wanted = scale.excess(group, count), -scale.excess(rest, rows.counts - count)
        every = np.arange(len(cut))
        source = _assigned(every, group >> HALF, given, wanted)
        after = scale.between(given[source] - wanted, rows.counts - count + count[source])
        if after < scale.goal:
            # All rows would come out more even than random ones, so only as many take part as bring them to the goal.
            share = (now - scale.goal << _SHARE_BITS) // (now - after)
            part = np.flatnonzero(random(len(cut), RANDOM_BITS, draws) < np.uint64(share))
            source = every.copy()
            source[part] = _assigned(part, group >> HALF, given, wanted)
        rows = _received(rows, cut, source)
    return rows


def even_costs(rows: RowSegments, draws: np.random.Philox) -> RowSegments:
    """Give the first segments of each row, as many as drawn, to the row whose cost they bring nearest to the mean.

    A segment of n tokens costs about n² / 2 query-key pairs. As in balancing, the groups of one sum are assigned anew:
    the one that costs most goes to the row whose other segments cost least, so that no round makes costs less even.
    """
    before, idle = None, 0
    for _ in range(_EVENING_ROUNDS if len(rows.counts) > 1 else 0):
        offsets, totals = offsets_of(rows.counts), running(rows.weight)
        length = rows.weight >> HALF
        squares = running(length * length)
        now = _unevenness(np.diff(squares[offsets]).view(np.int64))
        # Where few sums are equal, one round that brings nothing says little.
        idle = idle + 1 if before is not None and (before - now) * _EVENING <= before else 0
        if idle == _IDLE:
            break
        before = now
        start, end = offsets[:-1], offsets[1:]
        cut = somewhere_inside(start, rows.counts, draws)
        given, rest = (squares[cut] - squares[start]).view(np.int64), (squares[end] - squares[cut]).view(np.int64)
        source = _assigned(np.arange(len(cut)), totals[cut] - totals[start] >> HALF, given, -rest)
        rows = _received(rows, cut, source)
    return rows


def _unevenness(cost: I64) -> int:
    """Compute the variance of costs, times rows, in units that let whole numbers hold it.

    >>> _unevenness(np.array([1, 5])), _unevenness(np.array([7, 7, 7]))
    (8, 0)
    """
    cost = cost >> max(0, int(cost.max()).bit_length() - _COST_BITS)
    excess = cost - int(cost.sum()) // len(cost)
    return int((excess * excess).sum())


def _received(rows: RowSegments, cut: I64, source: I64, *, ahead: bool = False) -> RowSegments:
    """Give each row the segments before the cut of another.

    What stays comes first, so that the next round cuts elsewhere; or, `ahead`, what is received.
    """
    offsets = offsets_of(rows.counts)
    start, end = offsets[:-1], offsets[1:]
    count = cut - start
    parts = [(cut, end - cut), (start[source], count[source])]
    first, taken = (np.stack(column, 1).ravel() for column in zip(*(parts[::-1] if ahead else parts), strict=True))
    if not taken.all():  # a row may give all that it has
        first, taken = first[taken > 0], taken[taken > 0]
    weight = rows.weight.take(consecutive(first, taken, offsets_of(taken)))
    return RowSegments(weight, rows.counts - count + count[source])


def _assigned(part: I64, sums: U64, given: I64, wanted: I64) -> I64:
    """Choose the row whose group each of these rows receives, among rows whose groups have one sum.

    The sum of (given − wanted)² is least where both are in the same order.
    """
    source = np.empty_like(part)
    if len(part):
        sums = sums[part]
        source[sorted_by(sums, rank(wanted[part]))] = part[sorted_by(sums, rank(given[part]))]
    return source


def _trade(rows: RowSegments, free: I64, scale: _Scale, rounds: Rounds, draws: np.random.Philox) -> RowSegments:
    """Trade groups until the means of rows are near, then until few rows are of equal lengths but one.

    Args:
        free: tokens that each row has to spare; −1 where it takes no part.
    """
    free, idle = free.copy(), 0
    for _ in range(rounds.others):
        if scale.reached(now := scale.between_rows(rows), rounds.near) or idle == _IDLE:
            break
        offers = _Offers.of(rows, free, scale, draws)
        useful = np.flatnonzero(offers.gain > 0)
        # No more than bring rows to the goal: beyond it they would be more even than random ones.
        useful = useful[sorted_by(random(len(useful), RANDOM_BITS, draws))]
        gained = np.cumsum(offers.gain[useful])
        useful = useful[: int(np.searchsorted(gained, now - scale.goal)) + 1]
        # Cuts are drawn, so one round that brings nothing says little.
        idle = 0 if len(gained) and int(gained[-1]) * rounds.stalled > now else idle + 1
        rows = offers.accept(useful, free)
    for _ in range(rounds.parting):
        alike = np.zeros(len(free), np.bool_)
        alike[_alike(rows)] = True
        if np.count_nonzero(alike) * _FEW <= np.count_nonzero(rows.counts > 2):
            break
        offers = _Offers.of(rows, free, scale, draws)
        rows = offers.accept(np.flatnonzero(alike[offers.small] | alike[offers.large]), free)
    return rows


class _Offers(NamedTuple):
    """Pairs of rows whose first segments, up to a cut, may change places.

    Attributes:
        rows: the rows, each in a new random order.
        cut: where the first segments of each row end.
        small, large: the two rows of each pair: the one that gives fewer tokens, and the other.
        more: by how many.
        gain: by how much the variance between rows, times segments, would fall.
    """

    rows: RowSegments
    cut: I64
    small: I64
    large: I64
    more: I64
    gain: I64

    @classmethod
    def of(cls, rows: RowSegments, free: I64, scale: _Scale, draws: np.random.Philox) -> _Offers:
        """Pair the rows at random cuts; `free` is what each has to spare."""
        # In another order, other segments come first.
        row = np.repeat(np.arange(len(rows.counts)), rows.counts).astype(np.uint64)
        rows = rows._replace(weight=rows.weight[sorted_by(row, random(len(row), RANDOM_BITS, draws))])
        start, totals, counts = offsets_of(rows.counts), running(rows.weight), rows.counts
        cut = np.maximum(somewhere_inside(start[:-1], counts, draws), start[:-1] + 1)
        count, group = cut - start[:-1], totals[cut] - totals[start[:-1]]
        tokens, logs = (group >> HALF).view(np.int64), scale.excess(group, count)
        excess = scale.excess(np.diff(totals[start]), counts)
        # Neighbours in the order of sums differ least. Whether the first is paired with the second is drawn.
        order = sorted_by(group >> HALF, random(len(cut), RANDOM_BITS, draws))
        order = order[free[order] >= 0][int(draws.random_raw()) & 1 :]
        small, large = order[: len(order) // 2 * 2].reshape(-1, 2).T
        more = tokens[large] - tokens[small]
        fits = more <= free[small]
        small, large, more = small[fits], large[fits], more[fits]
        moved, segments = logs[large] - logs[small], count[large] - count[small]
        gain = (
            excess[small] ** 2 // counts[small]
            + excess[large] ** 2 // counts[large]
            - (excess[small] + moved) ** 2 // (counts[small] + segments)
            - (excess[large] - moved) ** 2 // (counts[large] - segments)
        )
        return cls(rows, cut, small, large, more, gain)

    def accept(self, pairs: I64, free: I64) -> RowSegments:
        """Exchange the first segments of these pairs, and keep account of what rows have to spare."""
        small, large, more = self.small[pairs], self.large[pairs], self.more[pairs]
        free[small] -= more
        free[large] += more
        source = np.arange(len(self.cut))
        source[small], source[large] = large, small
        return _received(self.rows, self.cut, source, ahead=True)


def _part(rows: RowSegments, number: I64, draws: np.random.Philox) -> tuple[RowSegments, I64]:
    """Separate rows of equal lengths but one; rows come out in another order, with their numbers."""
    few, before = len(rows.counts) // _FEW, None
    done, numbers = [], []
    for _ in range(_PARTING_ROUNDS):
        alike = _alike(rows)
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


def _alike(rows: RowSegments) -> I64:
    """Find rows of more than two segments that are equal, or all but one."""
    several = np.flatnonzero(rows.counts > 2)
    return several[equal_but_one(rows.weight, offsets_of(rows.counts)[several], rows.counts[several])]
