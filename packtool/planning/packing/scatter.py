"""Put the segments of few documents into bins in random order, where that takes no more bins.

Mixing exchanges groups of equal sums, and a small corpus has few of these. But there first fit in random order mostly
needs no more bins than best fit decreasing. Whole numbers alone decide.
"""

from __future__ import annotations

import numpy as np

from packtool.planning.packing.first_fit_shuffle import first_fit_in_order
from packtool.planning.packing.plans import RowsPlan
from packtool.planning.plan import I64, offsets_of
from packtool.planning.shuffling.permutation import Purpose, permutation

_MOST = 1 << 17  # segments; more have enough equal sums
_KEPT_BACK = (0, 2, 5)  # percent of the tokens


def scattered(plan: RowsPlan, seed: int) -> RowsPlan:
    """Put the segments of a plan's bins first fit in random order, where that takes no more bins; else leave them.

    The first try is in the random order of `first-fit-shuffle`. The others keep the smallest segments, of a share of
    the tokens, to the end, longest first, to fill what the others leave.

    Args:
        seed: of the order.
    """
    length = plan.bin_lengths().astype(np.int64)
    if not 2 < len(length) <= _MOST:
        return plan
    place = np.empty(plan.documents, np.int64)  # of each document in the random order
    place[permutation(plan.documents, seed=seed, purpose=Purpose.FIRST_FIT_ORDER)] = np.arange(plan.documents)
    drawn = np.argsort(place[plan.bins.document], kind="stable")  # the segments in that order
    ascending = drawn[np.argsort(length[drawn], kind="stable")]  # equal lengths stay in that order
    smallest = np.cumsum(length[ascending])
    for share in _KEPT_BACK:
        count = int(np.searchsorted(smallest, smallest[-1] * share // 100, side="right"))
        order = _last(drawn, np.flip(ascending[:count]))
        bin = first_fit_in_order(length[order], plan.sequence_length)
        if bin.max() < len(plan.bins.offsets) - 1:
            by_bin = order[np.argsort(bin, kind="stable")]  # inside a bin as they were put there
            return plan.with_bins(plan.bins.at(by_bin, offsets_of(np.bincount(bin))))
    return plan


def _last(order: I64, last: I64) -> I64:
    """Move some items of an order to its end.

    >>> _last(np.array([2, 0, 3, 1]), np.array([3, 2]))
    array([0, 1, 3, 2])
    """
    kept = np.ones(len(order), np.bool_)
    kept[last] = False
    return np.append(order[kept[order]], last)
