"""Groups of consecutive segments: their sums, a random order, and an order by sum. All in whole numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from packtool.plan import I64

U64 = npt.NDArray[np.uint64]

HALF = np.uint64(32)
"""A weight has a length in the upper 32 bits and its log in the lower ones."""
LOW = np.uint64(0xFFFFFFFF)
INDEX_BITS = 22
RANDOM_BITS = 16
_RANK_BITS = 18  # a row length has up to 24 bits, so 18 of 64 are left to order groups of one sum
_EVEN = np.uint64(0x0000FFFF0000FFFF)
_LOG_SCALE = 1 << 8  # steps of log length in an octave


def weights(sequence_length: int) -> U64:
    """Compute the weight of a segment of each length up to L; see `RowSegments`."""
    length = np.arange(sequence_length + 1)
    log = np.rint(np.log2(np.maximum(length, 1)) * _LOG_SCALE)
    weights: U64 = length.astype(np.uint64) << HALF | log.astype(np.uint64)
    return weights


def running(weight: U64) -> U64:
    """Add up the weights of all segments before each, then of all."""
    totals = np.zeros(len(weight) + 1, np.uint64)
    np.cumsum(weight, out=totals[1:])
    return totals


def consecutive(first: I64, counts: I64, offsets: I64) -> I64:
    """Do as `packtool.plan.ranges`, where no range is empty: a running total of steps is quicker."""
    steps = np.ones(int(offsets[-1]), np.int64)
    steps[0] = first[0]
    steps[offsets[1:-1]] = first[1:] - (first + counts)[:-1] + 1
    return np.cumsum(steps, out=steps)


def cuts(segments: int, draws: np.random.Philox) -> npt.NDArray[np.bool_]:
    """Choose each segment with probability one fourth."""
    count = -(-segments // 8)
    return np.unpackbits(_bytes(count, draws) & _bytes(count, draws), count=segments).view(np.bool_)


def somewhere_inside(start: I64, counts: I64, draws: np.random.Philox) -> I64:
    """Draw a place in each row behind its first segment, mostly near the middle; the first, where it is the only one.

    The mean of four draws: groups of half a row meet others made of other lengths more often than single segments do.
    """
    some: U64 = draws.random_raw(len(start))
    some = (some & _EVEN) + (some >> np.uint64(16) & _EVEN)  # two sums of two draws each
    some = (some & LOW) + (some >> HALF)
    most = counts - 1
    inside: I64 = start + np.minimum(1 + (some.view(np.int64) * most >> 18), most)
    return inside


def deal_at_random(sums: U64, draws: np.random.Philox) -> I64:
    """Choose the group that each place receives: the next one of its sum, in random order, round and round."""
    order = sorted_by(sums, random(len(sums), RANDOM_BITS, draws))
    alike = sums[order]
    last = np.flatnonzero(np.append(alike[1:] != alike[:-1], True))
    following = np.append(order[1:], 0)
    following[last] = order[np.append(0, last[:-1] + 1)]
    source = np.empty_like(order)
    source[order] = following
    return source


def sorted_by(key: npt.NDArray[np.unsignedinteger[Any]], rank: U64 | None = None) -> I64:
    """Sort indices by key, rank and index.

    Digit by digit, the lowest first: NumPy sorts indices of 16 bits by counting, several times as fast as by comparing.

    >>> sorted_by(np.array([2, 1, 2, 1 << 20], np.uint64), np.array([9, 0, 3, 0], np.uint64))
    array([1, 2, 0, 3])
    """
    number: npt.NDArray[Any] = key if rank is None else key << np.uint64(int(rank.max(initial=0)).bit_length()) | rank
    order = np.argsort(number.astype(np.uint16, copy=False), kind="stable")
    for low in range(16, int(number.max(initial=0)).bit_length(), 16):
        digit = (number >> np.uint64(low)).astype(np.uint16)
        order = order.take(np.argsort(digit.take(order), kind="stable"))
    return order


def rank(excess: I64) -> U64:
    """Map `excess` to numbers of 18 bits in the same order; where it takes more, neighbours become equal."""
    low = int(excess.min())
    shift = max(0, (int(excess.max()) - low).bit_length() - _RANK_BITS)
    return (excess - low >> shift).view(np.uint64)


def _bytes(count: int, draws: np.random.Philox) -> npt.NDArray[np.uint8]:
    """Draw random bytes, the same whatever the machine's byte order."""
    words: U64 = draws.random_raw(-(-count // 8))
    return words.astype("<u8", copy=False).view(np.uint8)[:count]


def random(count: int, bits: int, draws: np.random.Philox) -> U64:
    """Draw random numbers of 16 or 32 bits."""
    return _bytes(count * bits // 8, draws).view(f"<u{bits // 8}").astype(np.uint64)
