"""Mix rows: exchange segments between rows so that rows no longer differ in the lengths that they hold.

Greedy packing puts equal lengths together: rows that look alike inside and differ from each other. Mixing works in
rounds. A round cuts every row into groups of consecutive segments, and deals groups of equal sums anew, at random:

    rows       [3 4|5][7 5|4 8]      groups that end at |
    sums        7   5  12    12      the 12s are dealt among themselves, so are the 7s and 5s of other rows
    new rows   [3 4|5][4 8|7 5]      each row has the sum that it had

So the number of rows, their sums, padding and cuts stay what they are; only which documents share a row changes.
It works where there are many groups of equal sums: with few documents to a window, or lengths within a few tokens of
each other, rows stay more alike than random ones.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from packtool.planning.packing.bins.runs import sorted_by
from packtool.planning.plan import I64, Ints, offsets_of, ranges
from packtool.planning.shuffling.permutation import Purpose, stream

U64 = npt.NDArray[np.uint64]

_ROUNDS = 8  # twice as many take half as long again, and leave rows about a tenth less alike
_BLOCK = 1 << 18  # segments that are mixed together, about: what fits the cache, and enough for groups of equal sums
_NEIGHBOURS = 8  # rows that go to a block together: they share lines of the cache


def mix(
    items: Ints, length: Ints, offsets: I64, sequence_length: int, *, seed: int, window: int = 0
) -> tuple[Ints, I64]:
    """Exchange segments between rows.

    A segment that reaches beyond the first L tokens of its row, or lies there, stays where it is. Every row keeps its
    sum.

    Args:
        items: what stands for each segment, row after row: its document, or its place.
        length: tokens of each segment, 1 to L.
        offsets: rows + 1; row i holds segments ``offsets[i]:offsets[i + 1]``.
        sequence_length: tokens in a row, L.
        seed: for all draws.
        window: a number that differs for every mix with the same seed and L.

    Returns:
        The items in their new rows, row after row; and rows + 1 offsets of the rows.

    >>> length = np.array([5, 5, 4, 3, 3, 4])
    >>> items, offsets = mix(np.arange(6), length, np.array([0, 2, 6]), 14, seed=42)
    >>> np.add.reduceat(length[items], offsets[:-1])
    array([10, 14])
    """
    counts = np.diff(offsets)
    rows = len(counts)
    blocks = max(1, min(len(length) // _BLOCK, -(-rows // _NEIGHBOURS)))
    dealt = []
    for block in range(blocks):
        here = _rows_of(block, blocks, rows)
        place = ranges(offsets[here], counts[here], offsets_of(counts[here]))
        draws = stream(seed, Purpose.ROW_MIX, window, sequence_length, block)
        order, counts[here] = _mix_block(length[place].astype(np.int64), counts[here], sequence_length, draws)
        dealt.append(items[place][order])
    offsets = offsets_of(counts)
    mixed = np.empty_like(items)
    for block, part in enumerate(dealt):
        here = _rows_of(block, blocks, rows)
        mixed[ranges(offsets[here], counts[here], offsets_of(counts[here]))] = part
    return mixed, offsets


def _rows_of(block: int, blocks: int, rows: int) -> I64:
    """List the rows of a block, ascending: neighbours, from all over the plan.

    >>> _rows_of(1, 2, 14)
    array([ 8,  9, 10, 11, 12, 13])
    """
    first = np.arange(block * _NEIGHBOURS, rows, blocks * _NEIGHBOURS)
    here = (first[:, None] + np.arange(_NEIGHBOURS)).ravel()
    return here[: np.searchsorted(here, rows)]


def _mix_block(length: I64, counts: I64, sequence_length: int, draws: np.random.Philox) -> tuple[I64, I64]:
    """Mix the rows of a block.

    Args:
        length: of each segment, row after row.
        counts: segments in each row.
        sequence_length: tokens in a row, L.
        draws: the source of all randomness.

    Returns:
        The segments in their new order, and how many each row has.
    """
    row = np.repeat(np.arange(len(counts)), counts)
    # What lies beyond the first L tokens is not in the row. Exchanged, other documents would lose their ends.
    fixed = _beyond(length, counts, sequence_length)
    free = np.flatnonzero(~fixed)
    # Rounds deal lengths, not segments: which of the segments of one length goes where is drawn once, afterwards.
    dealt, dealt_counts = length[free], np.bincount(row[free], minlength=len(counts))
    for _ in range(_ROUNDS if len(free) else 0):
        dealt, dealt_counts = _deal(dealt, dealt_counts, draws)
    # The segments of a row in random order, so that no place in a row favours a length.
    new_row = np.repeat(np.arange(len(counts)), dealt_counts)
    inside = sorted_by(new_row.view(np.uint64), _random(len(free), draws))
    dealt = dealt[inside]
    # The places of each length, ascending, take its segments in random order.
    # Both sorts are by length, and every length occurs equally often in both: so item k of one goes to item k.
    segments = sorted_by(length[free].view(np.uint64), _random(len(free), draws))
    places = sorted_by(dealt.view(np.uint64))
    order = np.empty_like(free)
    order[places] = free[segments]
    if fixed.any():
        # Back to the ends of the rows that they were in.
        order, new_row = np.append(order, np.flatnonzero(fixed)), np.append(new_row, row[fixed])
        order = order[np.argsort(new_row, kind="stable")]
    return order, np.bincount(new_row, minlength=len(counts))


def _beyond(length: I64, counts: I64, sequence_length: int) -> npt.NDArray[np.bool_]:
    """Find which segments do not end within the first L tokens of their row."""
    ends, bounds = offsets_of(length), offsets_of(counts)
    beyond: npt.NDArray[np.bool_] = ends[1:] > np.repeat(ends[bounds[:-1]] + sequence_length, counts)
    return beyond


def _deal(length: I64, counts: I64, draws: np.random.Philox) -> tuple[I64, I64]:
    """Cut rows into groups, and deal the groups of each sum at random; return lengths and counts of the new rows."""
    offsets = offsets_of(counts)
    # Single segments meet only segments of their length. In groups of about four there are many sums, each made of
    # many lengths, and still enough groups of each to deal.
    begins = np.zeros(len(length) + 1, np.bool_)
    begins[:-1] = _one_in_four(len(length), draws)
    # A cut near the middle of each row as well: groups of half a row meet others made of other lengths more often than
    # single segments do. And one between rows: no group reaches over two.
    begins[_near_the_middle(offsets[:-1], counts, draws)] = True
    begins[offsets] = True
    bounds = np.flatnonzero(begins)
    start, size = bounds[:-1], np.diff(bounds)
    # A group's place receives a group of the same sum, so rows keep their sums.
    source = _next_of_equal_sum(np.diff(offsets_of(length)[bounds]).view(np.uint64), draws)
    new_size = size[source]
    moved = offsets_of(new_size)
    first_group = np.searchsorted(bounds, offsets)  # of each row
    return length[ranges(start[source], new_size, moved)], np.diff(moved[first_group])


def _next_of_equal_sum(sums: U64, draws: np.random.Philox) -> I64:
    """Choose for each place the group that it receives: in a random order of the groups of its sum, the next one.

    So a group never stays where it is unless it is the only one of its sum, and one sort is enough.
    """
    order = sorted_by(sums, _random(len(sums), draws))
    ordered = sums[order]
    # Where each sum ends in this order. The complement of the last sum differs from it: so the last sum ends, too.
    last = np.flatnonzero(np.diff(ordered, append=~ordered[-1:]))
    first = np.append(0, last[:-1] + 1)
    following = np.append(order[1:], order[:1])
    following[last] = order[first]  # after the last group of a sum comes its first
    source = np.empty_like(order)
    source[order] = following
    return source


def _near_the_middle(start: I64, counts: I64, draws: np.random.Philox) -> I64:
    """Draw a place in each row behind its first segment, mostly near the middle; in a row of one segment its start.

    The place is the mean of two draws of 16 bits, mapped to 1 … segments - 1.
    """
    both: U64 = draws.random_raw(len(start))
    total = ((both & np.uint64(0xFFFF)) + (both >> np.uint64(16) & np.uint64(0xFFFF))).view(np.int64)
    inside: I64 = start + np.minimum(1 + (total * (counts - 1) >> 17), np.maximum(counts - 1, 0))
    return inside


def _one_in_four(count: int, draws: np.random.Philox) -> npt.NDArray[np.bool_]:
    """Draw true with a probability of one fourth for each of `count` items: if both of two random bits are set."""
    size = -(-count // 8)
    return np.unpackbits(_bytes(size, draws) & _bytes(size, draws), count=count).view(np.bool_)


def _random(count: int, draws: np.random.Philox) -> U64:
    """Draw random numbers of 16 bits."""
    return _bytes(count * 2, draws).view("<u2").astype(np.uint64)


def _bytes(count: int, draws: np.random.Philox) -> npt.NDArray[np.uint8]:
    """Draw random bytes, the same on machines of either byte order."""
    words: U64 = draws.random_raw(-(-count // 8))
    return words.astype("<u8", copy=False).view(np.uint8)[:count]
