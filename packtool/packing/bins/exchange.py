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

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from packtool.packing.bins.runs import sorted_by
from packtool.plan import I64, equal_but_one, offsets_of, ranges

U64 = npt.NDArray[np.uint64]

HALF = np.uint64(32)
"""A weight has a length in the upper 32 bits and its log in the lower ones."""
_LOW = np.uint64(0xFFFFFFFF)
_RANDOM_BITS = 16  # of random numbers that order groups, and that are compared with a share
_RANK_BITS = 18  # a row length has up to 24 bits, so 18 of 64 are left to order groups of one sum
_EVEN = np.uint64(0x0000FFFF0000FFFF)
_LOG_SCALE = 1 << 8  # steps of log length in an octave
_SMALL = 1 << 18  # segments
_PARTING_ROUNDS = 16
_WORTHWHILE = 4  # random rounds go on while each takes off at least a fourth of the variance between rows
_PARTED = 8  # parting rounds, while each parts an eighth of the rows that are alike
_FEW = 256  # and while more than one row in so many is
_OTHERS = 4  # rows that take part in a parting round, for each that is alike
_NEAR = 32  # the goal is reached where no more than one part in so many is missing
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
        if segments < _SMALL:
            return cls(random=(24, 64), others=400, stalled=1024, parting=16, near=_NEAR)
        return cls(random=(2, 10), others=32, stalled=40, parting=0, near=8)


@dataclass(frozen=True)
class RowSegments:
    """Rows of one or more segments.

    Attributes:
        weight: of each segment, row after row: its length in the upper 32 bits, its log in the lower ones. One running
            total adds up both; differences hold even where the total overflows.
        counts: segments in each row.
    """

    weight: U64
    counts: I64

    @cached_property
    def offsets(self) -> I64:
        """Where the segments of each row begin, then how many there are."""
        return offsets_of(self.counts)

    @cached_property
    def totals(self) -> U64:
        """Weights of all segments before each, then of all."""
        return _running(self.weight)

    def where(self, wanted: npt.NDArray[np.bool_]) -> RowSegments:
        """Select rows."""
        return RowSegments(self.weight[np.repeat(wanted, self.counts)], self.counts[wanted])

    @classmethod
    def join(cls, parts: Sequence[RowSegments]) -> RowSegments:
        """Put rows one after the other."""
        return cls(np.concatenate([rows.weight for rows in parts]), np.concatenate([rows.counts for rows in parts]))


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
    alone = mixed.where(~several)
    mixed = _balance(mixed.where(several), scale.with_alone(alone.weight), rounds, draws)
    if even_cost:
        mixed = even_costs(mixed, draws)
    # Balancing makes rows of one mean, and three equal segments have the mean of any three: such rows are parted after
    # it. Trading comes last, since it alone changes the sums of rows.
    mixed, number = RowSegments.join([mixed, alone]), np.concatenate([number[several], number[~several]])
    mixed, number = _part(mixed, number, draws)
    mixed = _trade(mixed, free[number], scale, rounds, draws)
    row = np.repeat(number, mixed.counts)
    order = sorted_by(row.astype(np.uint64), random(len(row), draws))
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
        log, of_long = (weight & _LOW).view(np.int64), int((longest & _LOW)[0])
        segments = len(log) + long_rows
        mean = (int(log.sum()) + long_rows * of_long) // max(1, segments)
        alone = long_rows * (of_long - mean) ** 2
        squares = int(((log - mean) ** 2).sum()) + alone
        # Of n segments dealt at random to k rows, a share (k - 1) / (n - 1) of the variance lies between rows.
        random = squares * (rows + long_rows - 1) // max(1, segments - 1)
        return cls(mean, alone, random)

    def with_alone(self, weight: U64) -> _Scale:
        """Add rows of a single segment to the account."""
        there = self.excess(weight, np.int64(1))
        return self._replace(alone=self.alone + int((there * there).sum()))

    def excess(self, weight: U64, counts: I64 | np.int64) -> I64:
        """Add up by how much the logs of some segments exceed the mean."""
        return (weight & _LOW).view(np.int64) - counts * self.mean

    def excess_of(self, rows: RowSegments) -> I64:
        """Add up by how much the logs of each row's segments exceed the mean."""
        return self.excess(np.diff(rows.totals[rows.offsets]), rows.counts)

    def between(self, excess: I64, counts: I64) -> int:
        """Compute the variance between rows, times segments."""
        return int((excess * excess // counts).sum()) + self.alone

    def reached(self, between: int, near: int = _NEAR) -> bool:
        """Return whether rows are as mixed as random ones."""
        return (between - self.goal) * near <= self.goal


def _spread(rows: RowSegments, scale: _Scale, rounds: Rounds, draws: np.random.Philox) -> RowSegments:
    """Deal groups of equal sums at random, round after round."""
    least, most = rounds.random
    before = 0
    for number in range(most):
        now = scale.between(scale.excess_of(rows), rows.counts)
        if number >= least and now * _WORTHWHILE > before * (_WORTHWHILE - 1):
            break
        before = now
        rows = _deal(rows, draws)
    return rows


def _deal(rows: RowSegments, draws: np.random.Philox) -> RowSegments:
    """Cut each row at one place and at a fourth of the others, deal groups of equal sums at random."""
    segments, offsets = len(rows.weight), rows.offsets
    begins = _cuts(segments, draws)
    begins[offsets[:-1]] = True  # no group reaches over two rows
    begins[_somewhere_inside(offsets[:-1], rows.counts, draws)] = True
    start = np.flatnonzero(begins)
    bounds = np.append(start, segments)
    # Groups keep their place in the row; what a place receives has the sum of what it gives, so rows keep theirs.
    source = _deal_at_random(np.diff(rows.totals[bounds]) >> HALF, draws)
    counts = np.diff(bounds)[source]
    group = offsets_of(begins.view(np.uint8))[offsets]
    dealt = offsets_of(counts)
    return RowSegments(rows.weight.take(ranges(start[source], counts, dealt)), np.diff(dealt[group]))


def _balance(rows: RowSegments, scale: _Scale, rounds: Rounds, draws: np.random.Philox) -> RowSegments:
    """Give the first segments of each row, as many as drawn, to the row whose mean they bring nearest."""
    before = None
    for _ in range(rounds.others if len(rows.counts) > 1 else 0):
        excess = scale.excess_of(rows)
        now = scale.between(excess, rows.counts)
        if scale.reached(now) or (before is not None and (before - now) * rounds.stalled < before):
            break
        before = now
        start = rows.offsets[:-1]
        cut = _somewhere_inside(start, rows.counts, draws)
        count, group = cut - start, rows.totals[cut] - rows.totals[start]
        # A row is at the mean where the group it receives exceeds it by as much as the rest of the row falls short.
        given = scale.excess(group, count)
        wanted = given - excess
        every = np.arange(len(cut))
        source = _assigned(every, group >> HALF, given, wanted)
        after = scale.between(given[source] - wanted, rows.counts - count + count[source])
        if after < scale.goal:
            # All rows would come out more even than random ones, so only as many take part as bring them to the goal.
            share = (now - scale.goal << _RANDOM_BITS) // (now - after)
            part = np.flatnonzero(random(len(cut), draws) < np.uint64(share))
            source = every.copy()
            source[part] = _assigned(part, group >> HALF, given, wanted)
        rows = _received(rows, cut, source)
    return rows


def even_costs(rows: RowSegments, draws: np.random.Philox) -> RowSegments:
    """Give the first segments of each row, as many as drawn, to the row whose cost they bring nearest to the mean.

    A segment of n tokens costs about n² / 2 query-key pairs. As in balancing, the groups of one sum are assigned to
    rows: the one that costs most goes to the row whose other segments cost least, so that no round makes costs less
    even.
    """
    before, idle = None, 0
    for _ in range(_EVENING_ROUNDS if len(rows.counts) > 1 else 0):
        length = rows.weight >> HALF
        squares = _running(length * length)
        now = _unevenness(np.diff(squares[rows.offsets]).view(np.int64))
        # Where few sums are equal, one round that brings nothing says little.
        idle = idle + 1 if before is not None and (before - now) * _EVENING <= before else 0
        if idle == _IDLE:
            break
        before = now
        start, end = rows.offsets[:-1], rows.offsets[1:]
        cut = _somewhere_inside(start, rows.counts, draws)
        given, rest = (squares[cut] - squares[start]).view(np.int64), (squares[end] - squares[cut]).view(np.int64)
        source = _assigned(np.arange(len(cut)), rows.totals[cut] - rows.totals[start] >> HALF, given, -rest)
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
    start, end = rows.offsets[:-1], rows.offsets[1:]
    count = cut - start
    parts = [(cut, end - cut), (start[source], count[source])]
    first, taken = (np.stack(column, 1).ravel() for column in zip(*(parts[::-1] if ahead else parts), strict=True))
    weight = rows.weight.take(ranges(first, taken, offsets_of(taken)))
    return RowSegments(weight, rows.counts - count + count[source])


def _assigned(part: I64, sums: U64, given: I64, wanted: I64) -> I64:
    """Choose the row whose group each of these rows receives, among rows whose groups have one sum.

    The sum of (given − wanted)² is least where both are in the same order.
    """
    source = np.empty_like(part)
    if len(part):
        sums = sums[part]
        source[sorted_by(sums, _rank(wanted[part]))] = part[sorted_by(sums, _rank(given[part]))]
    return source


def _trade(rows: RowSegments, free: I64, scale: _Scale, rounds: Rounds, draws: np.random.Philox) -> RowSegments:
    """Trade groups until the means of rows are near, then until few rows are of equal lengths but one.

    Args:
        free: tokens that each row has to spare; −1 where it takes no part.
    """
    free, idle = free.copy(), 0
    for _ in range(rounds.others):
        if scale.reached(now := scale.between(scale.excess_of(rows), rows.counts), rounds.near) or idle == _IDLE:
            break
        offers = _Offers.of(rows, free, scale, draws)
        useful = np.flatnonzero(offers.gain > 0)
        # No more than bring rows to the goal: beyond it they would be more even than random ones.
        useful = useful[sorted_by(random(len(useful), draws))]
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
        counts = rows.counts
        row = np.repeat(np.arange(len(counts)), counts).astype(np.uint64)
        rows = RowSegments(rows.weight[sorted_by(row, random(len(row), draws))], counts)
        start = rows.offsets[:-1]
        cut = np.maximum(_somewhere_inside(start, counts, draws), start + 1)
        count, group = cut - start, rows.totals[cut] - rows.totals[start]
        tokens, logs = (group >> HALF).view(np.int64), scale.excess(group, count)
        excess = scale.excess_of(rows)
        # Neighbours in the order of sums differ least. Whether the first is paired with the second is drawn.
        order = sorted_by(group >> HALF, random(len(cut), draws))
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
        # Among themselves rows of equal lengths would only get equal lengths again, so others, drawn, take part.
        chosen = random(len(rows.counts), draws) * np.uint64(len(rows.counts))
        part = chosen < np.uint64(_OTHERS * len(alike) << _RANDOM_BITS)
        part[alike] = True
        done.append(rows.where(~part))
        numbers.append(number[~part])
        rows, number = _deal(rows.where(part), draws), number[part]
    return RowSegments.join([*done, rows]), np.concatenate([*numbers, number])


def _alike(rows: RowSegments) -> I64:
    """Find rows of more than two segments that are equal, or all but one."""
    several = np.flatnonzero(rows.counts > 2)
    return several[equal_but_one(rows.weight, rows.offsets[several], rows.counts[several])]


def weights(sequence_length: int) -> U64:
    """Compute the weight of a segment of each length up to L; see `RowSegments`."""
    length = np.arange(sequence_length + 1)
    log = np.rint(np.log2(np.maximum(length, 1)) * _LOG_SCALE)
    weights: U64 = length.astype(np.uint64) << HALF | log.astype(np.uint64)
    return weights


def _running(weight: U64) -> U64:
    """Add up the weights of all segments before each, then of all."""
    totals = np.zeros(len(weight) + 1, np.uint64)
    np.cumsum(weight, out=totals[1:])
    return totals


def _cuts(segments: int, draws: np.random.Philox) -> npt.NDArray[np.bool_]:
    """Choose each segment with probability one fourth."""
    count = -(-segments // 8)
    return np.unpackbits(_bytes(count, draws) & _bytes(count, draws), count=segments).view(np.bool_)


def _somewhere_inside(start: I64, counts: I64, draws: np.random.Philox) -> I64:
    """Draw a place in each row behind its first segment, mostly near the middle; the first, where it is the only one.

    The mean of four draws: groups of half a row meet others made of other lengths more often than single segments do.
    """
    some: U64 = draws.random_raw(len(start))
    some = (some & _EVEN) + (some >> np.uint64(16) & _EVEN)  # two sums of two draws each
    some = (some & _LOW) + (some >> HALF)
    most = counts - 1
    inside: I64 = start + np.minimum(1 + (some.view(np.int64) * most >> 18), most)
    return inside


def _deal_at_random(sums: U64, draws: np.random.Philox) -> I64:
    """Choose the group that each place receives: the next one of its sum, in random order, round and round."""
    order = sorted_by(sums, random(len(sums), draws))
    # Each place receives the group after its own in this order; the last of a sum, the first of that sum.
    alike = sums[order]
    last = np.flatnonzero(np.append(alike[1:] != alike[:-1], True))
    following = np.append(order[1:], 0)
    following[last] = order[np.append(0, last[:-1] + 1)]
    source = np.empty_like(order)
    source[order] = following
    return source


def _rank(excess: I64) -> U64:
    """Map `excess` to numbers of 18 bits in the same order; where it takes more, neighbours become equal."""
    low = int(excess.min())
    shift = max(0, (int(excess.max()) - low).bit_length() - _RANK_BITS)
    return (excess - low >> shift).view(np.uint64)


def random(count: int, draws: np.random.Philox) -> U64:
    """Draw random numbers of 16 bits."""
    return _bytes(count * 2, draws).view("<u2").astype(np.uint64)


def _bytes(count: int, draws: np.random.Philox) -> npt.NDArray[np.uint8]:
    """Draw random bytes, the same whatever the machine's byte order."""
    words: U64 = draws.random_raw(-(-count // 8))
    return words.astype("<u8", copy=False).view(np.uint8)[:count]
