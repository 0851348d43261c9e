"""Mix rows: move segments between rows so that no row exceeds its length.

Greedy packing puts equal lengths together: rows that look alike inside and differ from each other. Here every row is
cut into groups of consecutive segments. Groups of equal sums are dealt anew; where few sums are equal, as in long rows
of few documents, groups of unequal sums change places within what rows have of padding. So the number of rows, padding
and truncation stay what they are.

    rows ─▶ blocks that fit the cache, each a sample of all rows ─exchange.py─▶ lengths in new rows ─▶ segments

Segments of equal length change places at random, last of all, and so do the segments in each row.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from packtool.packing.bins.exchange import (
    HALF,
    U64,
    Rounds,
    exchange,
    random,
    weights,
)
from packtool.packing.bins.runs import sorted_by
from packtool.plan import I64, Ints, offsets_of, ranges
from packtool.shuffling.permutation import ROW_MIX, stream

_LEAST_BLOCK = 1 << 17  # segments in a block, at least
_LARGEST_BLOCK = 1 << 22  # and at most
_ROWS_FOR_EACH_SUM = 4  # rows in a block for each token of a row, so that equal sums are found
_NEIGHBOURS = 8  # rows that go to a block together: they share lines of the cache


def mix(
    items: Ints,
    length: Ints,
    offsets: I64,
    sequence_length: int,
    *,
    seed: int,
    window: int = 0,
    long_rows: int = 0,
    even_cost: bool = False,
) -> tuple[Ints, I64]:
    """Exchange segments between rows.

    A segment that reaches beyond the first L tokens of its row, or lies there, stays where it is, and its row keeps its
    sum. Other rows hold L tokens at most, as before.

    Args:
        items: what stands for each segment, row after row: its document, or its place.
        length: tokens of each segment, 1 to L.
        offsets: rows + 1; row i holds segments ``offsets[i]:offsets[i + 1]``.
        sequence_length: tokens in a row, L.
        seed: of all draws.
        window: a number that differs for every mix with the same seed and L.
        long_rows: rows of one segment of L tokens beside these; they count where rows are compared with random ones.
        even_cost: even out what rows cost in attention, too; segments that stay where they are do not count.

    Returns:
        The items in their new rows, row after row; and rows + 1 offsets of the rows.

    >>> length = np.array([5, 5, 4, 3, 3, 4])
    >>> items, offsets = mix(np.arange(6), length, np.array([0, 2, 6]), 14, seed=42)
    >>> (np.add.reduceat(length[items], offsets[:-1]) <= 14).tolist()
    [True, True]
    """
    counts = np.diff(offsets)
    rows, segments = len(counts), len(length)
    if not segments:
        return items, offsets
    blocks = _blocks(segments, rows, sequence_length)
    known, rounds = weights(sequence_length), Rounds.of(segments)
    dealt = []
    for block in range(blocks):
        here = _rows_of(block, blocks, rows)
        first, count = offsets[here], counts[here]
        place = ranges(first, count, offsets_of(count))
        draws = stream(seed, ROW_MIX, window, sequence_length, block)
        alone = len(range(block, long_rows, blocks))
        order, counts[here] = _mix_block(length[place].astype(np.int64), count, known, alone, rounds, draws, even_cost)
        dealt.append(items[place][order])
    offsets = offsets_of(counts)
    mixed = np.empty_like(items)
    for block in range(blocks):
        here = _rows_of(block, blocks, rows)
        count = counts[here]
        mixed[ranges(offsets[here], count, offsets_of(count))] = dealt[block]
        dealt[block] = mixed[:0]
    return mixed, offsets


def _blocks(segments: int, rows: int, sequence_length: int) -> int:
    """Choose into how many blocks the rows are dealt: few enough that a block has many rows for each sum."""
    wanted = segments * _ROWS_FOR_EACH_SUM * sequence_length // max(1, rows)
    block = min(max(wanted, _LEAST_BLOCK), _LARGEST_BLOCK * 3 // 4)
    return max(1, min(-(-segments // block), -(-rows // _NEIGHBOURS)))


def _rows_of(block: int, blocks: int, rows: int) -> I64:
    """List the rows of a block, ascending: neighbours, from all over the plan.

    >>> _rows_of(1, 2, 14)
    array([ 8,  9, 10, 11, 12, 13])
    """
    if blocks == 1:
        return np.arange(rows)
    first = np.arange(block * _NEIGHBOURS, rows, blocks * _NEIGHBOURS)
    here = (first[:, None] + np.arange(_NEIGHBOURS)).ravel()
    return here[: np.searchsorted(here, rows)]


def _mix_block(
    length: I64, counts: I64, known: U64, alone: int, rounds: Rounds, draws: np.random.Philox, even_cost: bool
) -> tuple[I64, I64]:
    """Mix a block: its segments in their new order, and how many each row has.

    Args:
        length: of each segment, row after row.
        counts: segments in each row.
        known: weights of segments of each length, from 0 to L.
        alone: how many rows of one segment of L tokens to reckon with.
        rounds: how many there are.
        draws: the source of all randomness.
        even_cost: as of `mix`.
    """
    total = len(length)
    if total >= _LARGEST_BLOCK:
        raise ValueError(f"a block holds fewer than {_LARGEST_BLOCK} segments")
    row = np.repeat(np.arange(len(counts)), counts)
    fixed = _beyond(length, counts, len(known) - 1)
    free = np.flatnonzero(~fixed)
    old = known[length[free]]
    spare = len(known) - 1 - np.diff(offsets_of(length)[offsets_of(counts)])
    spare[row[fixed]] = -1
    new, new_row = exchange(old, row[free], spare, known[-1:], alone, rounds, draws, even_cost)
    # Lengths have found their rows; now segments of each length take those places at random.
    order = np.empty_like(free)
    order[sorted_by(new >> HALF)] = free[sorted_by(old >> HALF, random(len(free), draws))]
    if len(free) < total:
        kept = np.flatnonzero(fixed)
        order, new_row = np.concatenate([order, kept]), np.concatenate([new_row, row[kept]])
        last = np.argsort(new_row, kind="stable")
        order, new_row = order[last], new_row[last]
    return order, np.bincount(new_row, minlength=len(counts))


def _beyond(length: I64, counts: I64, sequence_length: int) -> npt.NDArray[np.bool_]:
    """Find which segments do not end within the first L tokens of their row."""
    ends, bounds = offsets_of(length), offsets_of(counts)
    limit = ends[bounds[:-1]] + sequence_length
    if (ends[bounds[1:]] <= limit).all():
        return np.zeros(len(length), np.bool_)
    beyond: npt.NDArray[np.bool_] = ends[1:] > np.repeat(limit, counts)
    return beyond
