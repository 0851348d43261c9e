"""Windows: plan a corpus beyond memory in parts of a bounded number of tokens, cut between documents."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from packtool.plan import Ints

_BATCH = 1 << 18  # documents that are added up at a time


def window_ranges(lengths: Ints, tokens: int, ends: Sequence[int] = ()) -> list[tuple[int, int]]:
    """Divide documents into windows, ranges ``first:last``: as many as hold `tokens` tokens, at least one.

    Args:
        lengths: of all documents.
        tokens: tokens in a window at most, unless one document alone holds more.
        ends: where a window ends in any case.

    >>> window_ranges(np.array([3, 2, 2, 9, 1]), tokens=7, ends=[2])
    [(0, 2), (2, 3), (3, 4), (4, 5)]
    """
    ranges = []
    for first, last in pairwise(sorted({0, *ends, len(lengths)})):
        begin, held = first, 0  # the window that is being filled: its first document, and its tokens so far
        for step in range(first, last, _BATCH):
            stop = min(step + _BATCH, last)
            totals = np.cumsum(lengths[step:stop], dtype=np.int64)
            before = -held
            while (end := step + int(np.searchsorted(totals, before + tokens, side="right"))) < stop:
                end = max(end, begin + 1)
                ranges.append((begin, end))
                begin, before = end, int(totals[end - step - 1]) if end > step else 0
            held = int(totals[-1]) - before
        if begin < last:
            ranges.append((begin, last))
    return ranges
