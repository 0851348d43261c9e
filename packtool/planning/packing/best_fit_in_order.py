"""Best fit in order: documents cut to chunks of at most a row, each put where it leaves the least room of a few rows.

Rows hold documents that are neighbours in the corpus, at little more padding than best fit decreasing.
Known as k-bounded best fit: Csirik and Johnson, Bounded space on-line bin packing: best is better than first (2001).
"""

from __future__ import annotations

from bisect import bisect_left, insort

import numpy as np

from packtool.planning.packing.bins.filled import cut_documents
from packtool.planning.packing.plans import Bins, LongRows, RowsPlan
from packtool.planning.packing.strategy import PackOptions, Strategy
from packtool.planning.plan import I64, Ints, Plan, offsets_of

_ROW_BITS = 40
"""Bits of a row's number, below its room in one integer: rows sort by room, and by age where it is equal."""


def plan(lengths: Ints, options: PackOptions) -> list[Plan]:
    """Put chunks, in the order of the documents, into the fullest of K open bins of L tokens; EOS alone is left out.

    Rows that a long document fills come first. In the others documents keep their order.

    >>> bins, = plan(np.array([5, 6, 3, 2]), PackOptions(sequence_length=8))
    >>> bins.segments(np.arange(bins.rows)).document
    array([0, 2, 1, 3])
    """
    sequence_length = options.row_length
    documents = cut_documents(lengths, sequence_length)
    tails = sequence_length - documents.shortfall.astype(np.int64)
    items = np.flatnonzero(tails)
    bin = best_fit_in_order(tails[items], sequence_length, options.open_rows)
    by_bin = np.argsort(bin, kind="stable")
    return [
        RowsPlan(
            sequence_length,
            lengths,
            long=LongRows.of(documents.long, documents.rows, lengths, sequence_length),
            bins=Bins(items[by_bin], offsets_of(np.bincount(bin))),
            eos_omitted=documents.eos_alone,
        )
    ]


def best_fit_in_order(lengths: Ints, capacity: int, most: int) -> I64:
    """Put each item, in order, into the fullest open bin that has room for it; return the numbers of the items' bins.

    If no open bin has room, a new bin is opened; if `most` bins are open, the fullest is closed first. A full bin is
    closed. Of equally full bins the oldest takes the item, or is closed. `most` = 1 is next fit; without a limit it is
    best fit.

    Args:
        lengths: of the items, from 1 to `capacity`.
        capacity: tokens in a bin.
        most: bins that are open at a time.

    >>> best_fit_in_order(np.array([5, 6, 3, 2]), capacity=8, most=2)
    array([0, 1, 0, 1])
    >>> best_fit_in_order(np.array([5, 6, 3, 2]), capacity=8, most=1)
    array([0, 1, 2, 2])
    """
    bins: list[int] = []
    open_bins: list[int] = []  # room << _ROW_BITS | number, ascending: the fullest first
    opened = 0
    for length in lengths.tolist():
        needed = length << _ROW_BITS
        place = bisect_left(open_bins, needed)
        if place < len(open_bins):
            chosen = open_bins.pop(place)
        else:
            if len(open_bins) == most:
                del open_bins[0]
            chosen = capacity << _ROW_BITS | opened
            opened += 1
        bins.append(chosen & ((1 << _ROW_BITS) - 1))
        left = chosen - needed
        if left >> _ROW_BITS:
            insort(open_bins, left)
    return np.array(bins, np.int64)


STRATEGY = Strategy(
    name="best-fit-in-order",
    summary="whole documents in bins, best fit in corpus order",
    windowed=True,
    plan=plan,
    whole=True,
    omits_eos=True,
    neighbours=True,
)
