"""Windows: what exceeds memory is planned part by part, each part of a bounded number of tokens, cut at documents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

import numpy as np

from packtool.plan import Ints

_BATCH = 1 << 18  # documents that are added up at a time


def window_ranges(lengths: Ints, tokens: int, ends: Sequence[int] = ()) -> list[tuple[int, int]]:
    """Divide documents into windows: ranges ``first:last``.

    Args:
        lengths: of all documents.
        tokens: tokens in a window at most, unless one document alone holds more.
        ends: where a window ends in any case.

    >>> window_ranges(np.array([3, 2, 2, 9, 1]), tokens=7, ends=[2])
    [(0, 2), (2, 3), (3, 4), (4, 5)]
    """
    ranges = []
    for first, last in pairwise(sorted({0, *ends, len(lengths)})):
        at = first
        for window in in_windows([lengths[first:last]], tokens):
            ranges.append((at, at + len(window)))
            at += len(window)
    return ranges


def in_windows(blocks: Iterable[Ints], tokens: int) -> Iterator[Ints]:
    """Yield the lengths of the documents of each window: as many as hold `tokens` tokens, at least one.

    Windows do not depend on how the lengths are divided into blocks.

    Args:
        blocks: lengths of consecutive documents.
        tokens: tokens in a window at most, unless one document alone holds more.

    >>> [window.tolist() for window in in_windows([np.array([3, 2]), np.array([2, 9, 1])], tokens=7)]
    [[3, 2, 2], [9], [1]]
    """
    waiting: list[Ints] = []
    room = tokens
    for block in blocks:
        first = 0
        for step in range(0, len(block), _BATCH):
            ends = np.cumsum(block[step : step + _BATCH], dtype=np.int64)
            base = 0
            while (last := int(np.searchsorted(ends, base + room, side="right"))) < len(ends):
                if not waiting and step + last == first:
                    last += 1
                waiting.append(block[first : step + last])
                yield _in_one(waiting)
                waiting, room = [], tokens
                first, base = step + last, int(ends[last - 1]) if last else 0
            room -= int(ends[-1]) - base
        if first < len(block):
            waiting.append(block[first:])
    if waiting:
        yield _in_one(waiting)


def _in_one(parts: list[Ints]) -> Ints:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)
