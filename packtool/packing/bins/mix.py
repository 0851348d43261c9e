"""Mixed rows: segments change places between rows, and every row keeps its sum.

Greedy packing puts equal lengths together: rows that look alike inside and differ from each other. Here every row is
cut into groups of consecutive segments, and groups of equal sums are dealt anew. Row sums stay what they are, and with
them fill, padding, truncation and the number of rows.

Rows are dealt to blocks that fit the cache, each a sample of all rows. In a block, rounds of two kinds follow:

- Random rounds cut rows at random, and deal the groups of each sum at random. A few of them spread lengths over rows,
  and reach about what they ever will.
- Balancing rounds take one group out of each row. Among the rows whose groups have one sum, the group with the longest
  segments goes to the row whose other segments are shortest, and so on: the assignment that leaves the least variance
  between rows.

Rounds stop by a rule: random ones when they no longer help much, balancing ones when the share of the variance of log
length that lies between rows is seven eighths of that of random rows, or stops falling. Then segments of equal length
change places at random, and so do the segments in each row.

All arithmetic is in whole numbers, so that rows are the same on every machine.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from packtool.plan import I64, Ints, index_type, offsets_of, ranges
from packtool.shuffling.permutation import ROW_MIX, stream

U64 = npt.NDArray[np.uint64]

_LEAST_BLOCK = 1 << 17  # segments in a block, at least
_LARGEST_BLOCK = 1 << 22  # and at most: an index has 22 bits
_ROWS_FOR_EACH_SUM = 4  # rows in a block for each token of a row, so that equal sums are found
_INDEX_BITS = 22
_RANK_BITS = 18  # a row length has up to 24 bits, so 18 of 64 are left to order groups of one sum
_RANDOM_BITS = 16
_LOG_SCALE = 1 << 8  # steps of log length in an octave
_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)
_RANDOM_ROUNDS = (4, 10)
_BALANCING_ROUNDS = 32
_WORTHWHILE = 4  # random rounds go on while each takes off at least a fourth of the variance between rows
_STALLED = 64  # balancing rounds, while each takes off a sixty-fourth
_GOAL = (7, 8)  # of the variance between random rows: a little better than random, as first fit in random order is

LengthOf = Callable[[I64], I64]
"""From places of segments to their lengths."""


class Rows(NamedTuple):
    """Rows of one or more segments.

    Attributes:
        weight: of each segment, row after row: its length in the upper 32 bits, its log in the lower ones. One running
            total adds up both; differences hold even where the total overflows.
        counts: segments in each row.
    """

    weight: U64
    counts: I64


class Mixed(NamedTuple):
    """Segments in their new rows.

    Attributes:
        source: for each place, where its segment was.
        offsets: rows + 1; row i holds places ``offsets[i]:offsets[i + 1]``.
    """

    source: Ints
    offsets: I64


def mix(
    length_of: LengthOf, offsets: I64, sequence_length: int, *, seed: int, window: int = 0, long_rows: int = 0
) -> Mixed:
    """Exchange segments between rows.

    A segment that reaches beyond the first L tokens of its row, or lies there, stays where it is.

    Args:
        length_of: tokens of segments, of 1 to L each.
        offsets: rows + 1; row i holds segments ``offsets[i]:offsets[i + 1]``.
        sequence_length: tokens in a row, L.
        seed: of all draws.
        window: a number that differs for every mix with the same seed and L.
        long_rows: rows of one segment of L tokens beside these; they count where rows are compared with random ones.

    >>> length = np.array([5, 5, 4, 3, 3, 4])
    >>> mixed = mix(lambda places: length[places], np.array([0, 2, 6]), 14, seed=42)
    >>> np.add.reduceat(length[mixed.source], mixed.offsets[:-1])
    array([10, 14])
    """
    counts = np.diff(offsets)
    segments, rows = int(offsets[-1]), len(counts)
    if not segments:
        return Mixed(np.empty(0, np.uint32), offsets)
    blocks = _blocks(segments, rows, sequence_length)
    kind = index_type(segments)
    weights = _weights(sequence_length)
    sources = []
    for block in range(blocks):
        here = slice(block, None, blocks)
        first, count = offsets[:-1][here], counts[here]
        place = ranges(first, count, offsets_of(count))
        draws = stream(seed, ROW_MIX, window, sequence_length, block)
        alone = len(range(block, long_rows, blocks))
        order, counts[here] = _mix_block(length_of(place), count, weights, alone, draws)
        sources.append(place[order].astype(kind))
    offsets = offsets_of(counts)
    source = np.empty(segments, kind)
    for block in range(blocks):
        here = slice(block, None, blocks)
        count = counts[here]
        source[ranges(offsets[:-1][here], count, offsets_of(count))] = sources[block]
        sources[block] = source[:0]
    return Mixed(source, offsets)


def _blocks(segments: int, rows: int, sequence_length: int) -> int:
    """Into how many blocks the rows are dealt: few enough that a block has many rows for each sum."""
    wanted = segments * _ROWS_FOR_EACH_SUM * sequence_length // max(1, rows)
    block = min(max(wanted, _LEAST_BLOCK), _LARGEST_BLOCK * 3 // 4)
    return max(1, min(-(-segments // block), rows))


def _mix_block(length: I64, counts: I64, weights: U64, alone: int, draws: np.random.Philox) -> tuple[I64, I64]:
    """The segments of a block in their new order, and how many each row has.

    Args:
        length: of each segment, row after row.
        counts: segments in each row.
        weights: of segments of each length, from 0 to L.
        alone: how many rows of one segment of L tokens to reckon with.
    """
    total = len(length)
    if total >= 1 << _INDEX_BITS:
        raise ValueError("a block holds fewer than 2^22 segments")
    row = np.repeat(np.arange(len(counts)), counts)
    fixed = _beyond(length, counts, row, len(weights) - 1)
    free = np.flatnonzero(~fixed)
    old = weights[length[free]]
    scale = _Scale.of(old, len(counts), weights[-1:], alone)
    new_weight, new_row = _exchange(old, row[free], len(counts), scale, draws)
    # Lengths have found their rows; now segments of each length take those places at random.
    order = np.empty_like(free)
    order[_sorted_by(new_weight >> _HALF)] = free[_sorted_by(old >> _HALF, _random(len(free), _RANDOM_BITS, draws))]
    if len(free) < total:
        kept = np.flatnonzero(fixed)
        order, new_row = np.concatenate([order, kept]), np.concatenate([new_row, row[kept]])
        last = np.argsort(new_row, kind="stable")
        order, new_row = order[last], new_row[last]
    return order, np.bincount(new_row, minlength=len(counts))


def _beyond(length: I64, counts: I64, row: I64, sequence_length: int) -> npt.NDArray[np.bool_]:
    """Which segments do not end within the first L tokens of their row."""
    ends = offsets_of(length)
    limit = ends[offsets_of(counts)[:-1]] + sequence_length
    beyond: npt.NDArray[np.bool_] = ends[1:] > limit[row]
    return beyond


def _exchange(weight: U64, row: I64, rows: int, scale: _Scale, draws: np.random.Philox) -> tuple[U64, I64]:
    """The weights of segments in new rows, each row in random order; and the row of each, ascending."""
    counts = np.bincount(row, minlength=rows)
    number = np.flatnonzero(counts)
    spread = _spread(Rows(weight, counts[number]), scale, draws)
    # Balancing takes a group and leaves another, so it has no use for rows of one segment.
    several = spread.counts > 1
    inside = np.repeat(several, spread.counts)
    alone = spread.weight[~inside]
    there = scale.excess(alone, np.int64(1))
    scale = scale._replace(alone=scale.alone + int((there * there).sum()))
    mixed = _balance(Rows(spread.weight[inside], spread.counts[several]), scale, draws)
    weight = np.concatenate([mixed.weight, alone])
    row = np.concatenate([np.repeat(number[several], mixed.counts), number[~several]])
    order = _sorted_by(row.astype(np.uint64), _random(len(row), _RANDOM_BITS, draws))
    return weight[order], row[order]


class _Scale(NamedTuple):
    """What rows are measured against, in steps of log length.

    Attributes:
        mean: of the logs of all segments.
        alone: variance between rows, times segments, that rows of one segment have.
        goal: the same of rows that are mixed well enough: a little less than random rows have on average.
    """

    mean: int
    alone: int
    goal: int

    @classmethod
    def of(cls, weight: U64, rows: int, longest: U64, long_rows: int) -> _Scale:
        """Of segments of these weights in so many rows, and rows of one segment of the longest weight."""
        log, of_long = (weight & _LOW).astype(np.int64), int((longest & _LOW)[0])
        segments = len(log) + long_rows
        mean = (int(log.sum()) + long_rows * of_long) // max(1, segments)
        alone = long_rows * (of_long - mean) ** 2
        squares = int(((log - mean) ** 2).sum()) + alone
        random = squares * (rows + long_rows - 1) // max(1, segments - 1)
        return cls(mean, alone, random * _GOAL[0] // _GOAL[1])

    def excess(self, weight: U64, counts: I64 | np.int64) -> I64:
        """By how much the logs of some segments together exceed the mean."""
        return (weight & _LOW).astype(np.int64) - counts * self.mean

    def between(self, excess: I64, counts: I64) -> int:
        """The variance between rows, times segments."""
        return int((excess * excess // counts).sum()) + self.alone


def _spread(rows: Rows, scale: _Scale, draws: np.random.Philox) -> Rows:
    """Random rounds: cut each row at one place and at a fourth of the others, deal groups of equal sums at random."""
    least, most = _RANDOM_ROUNDS
    before = 0
    for number in range(most):
        segments, ends = len(rows.weight), offsets_of(rows.counts)
        totals = _running(rows.weight)
        now = scale.between(scale.excess(np.diff(totals[ends]), rows.counts), rows.counts)
        if number >= least and now * _WORTHWHILE > before * (_WORTHWHILE - 1):
            break
        before = now
        begins = _cuts(segments, draws)
        begins[ends[:-1]] = True
        begins[_somewhere_inside(ends[:-1], rows.counts, draws)] = True
        start = np.flatnonzero(begins)
        bounds = np.append(start, segments)
        source = _deal_at_random(np.diff(totals[bounds]) >> _HALF, draws)
        counts = np.diff(bounds)[source]
        group = offsets_of(begins.view(np.uint8))[ends]
        dealt = offsets_of(counts)
        rows = Rows(rows.weight.take(_consecutive(start[source], counts, dealt)), np.diff(dealt[group]))
    return rows


def _balance(rows: Rows, scale: _Scale, draws: np.random.Philox) -> Rows:
    """Balancing rounds: the first segments of each row, as many as drawn, go where they bring the mean nearest."""
    before = None
    for _ in range(_BALANCING_ROUNDS if len(rows.counts) > 1 else 0):
        offsets = offsets_of(rows.counts)
        totals = _running(rows.weight)
        now = scale.between(scale.excess(np.diff(totals[offsets]), rows.counts), rows.counts)
        if now <= scale.goal or (before is not None and (before - now) * _STALLED < before):
            break
        before = now
        start, end = offsets[:-1], offsets[1:]
        cut = _somewhere_inside(start, rows.counts, draws)
        count = cut - start
        group, rest = totals[cut] - totals[start], totals[end] - totals[cut]
        given = _rank(scale.excess(group, count))
        wanted = _rank(-scale.excess(rest, rows.counts - count))
        sums = group >> _HALF
        source = np.empty_like(cut)
        source[_sorted_by(sums, wanted)] = _sorted_by(sums, given)
        # What stays comes first, so that the next round cuts elsewhere.
        first = np.stack([cut, start[source]], 1).ravel()
        taken = np.stack([end - cut, count[source]], 1).ravel()
        weight = rows.weight.take(_consecutive(first, taken, offsets_of(taken)))
        rows = Rows(weight, rows.counts - count + count[source])
    return rows


def _weights(sequence_length: int) -> U64:
    """The weights of segments of each length up to L; see `Rows`."""
    length = np.arange(sequence_length + 1)
    log = np.rint(np.log2(np.maximum(length, 1)) * _LOG_SCALE)
    weights: U64 = length.astype(np.uint64) << _HALF | log.astype(np.uint64)
    return weights


def _running(weight: U64) -> U64:
    """The weights of all segments before each, then of all."""
    totals = np.zeros(len(weight) + 1, np.uint64)
    np.cumsum(weight, out=totals[1:])
    return totals


def _consecutive(first: I64, counts: I64, offsets: I64) -> I64:
    """`packtool.plan.ranges` where no range is empty: the running total of steps is quicker to come by."""
    steps = np.ones(int(offsets[-1]), np.int64)
    steps[0] = first[0]
    steps[offsets[1:-1]] = first[1:] - (first + counts)[:-1] + 1
    return np.cumsum(steps, out=steps)


def _cuts(segments: int, draws: np.random.Philox) -> npt.NDArray[np.bool_]:
    """Each segment chosen with probability one fourth."""
    count = -(-segments // 8)
    return np.unpackbits(_bytes(count, draws) & _bytes(count, draws), count=segments).view(np.bool_)


def _somewhere_inside(start: I64, counts: I64, draws: np.random.Philox) -> I64:
    """A place in each row behind its first segment; the first, where it is the only one."""
    some = _random(len(start), 32, draws).astype(np.int64)
    inside: I64 = start + np.minimum(1 + (some * (counts - 1) >> 32), counts - 1)
    return inside


def _deal_at_random(sums: U64, draws: np.random.Philox) -> I64:
    """The group that each place receives: the next one of its sum, in random order, round and round."""
    order = _sorted_by(sums, _random(len(sums), _RANDOM_BITS, draws))
    alike = sums[order]
    last = np.flatnonzero(np.append(alike[1:] != alike[:-1], True))
    following = np.append(order[1:], 0)
    following[last] = order[np.append(0, last[:-1] + 1)]
    source = np.empty_like(order)
    source[order] = following
    return source


def _sorted_by(key: U64, rank: U64 | None = None) -> I64:
    """Indices in ascending order of key, rank, index. Packed numbers are sorted several times as fast as indices."""
    packed = key << np.uint64(_RANK_BITS)
    if rank is not None:
        packed |= rank
    packed <<= np.uint64(_INDEX_BITS)
    packed |= np.arange(len(key), dtype=np.uint64)
    packed.sort()
    return (packed & np.uint64((1 << _INDEX_BITS) - 1)).astype(np.int64)


def _rank(excess: I64) -> U64:
    """Numbers of 18 bits in the order of `excess`; where it takes more, neighbours become equal."""
    low = int(excess.min())
    shift = max(0, (int(excess.max()) - low).bit_length() - _RANK_BITS)
    return (excess - low >> shift).astype(np.uint64)


def _bytes(count: int, draws: np.random.Philox) -> npt.NDArray[np.uint8]:
    """Random bytes, the same whatever the machine's byte order."""
    words: U64 = draws.random_raw(-(-count // 8))
    return words.astype("<u8", copy=False).view(np.uint8)[:count]


def _random(count: int, bits: int, draws: np.random.Philox) -> U64:
    """Random numbers of 16 or 32 bits."""
    return _bytes(count * bits // 8, draws).view(f"<u{bits // 8}").astype(np.uint64)
