"""Bucket composition: rows of several lengths, each begun by the longest document left, filled with shorter ones.

Few documents cut, few to a row, little padding; a trainer has to handle batches of several lengths.
Paper: Bucket Pre-training is All You Need, Algorithm 1.
"""

from __future__ import annotations

import numpy as np

from packtool.planning.packing.bins.algorithm1 import compose
from packtool.planning.packing.bins.runs import Keys, assign, stable_order
from packtool.planning.packing.plans import Bins, RowsPlan
from packtool.planning.packing.strategy import PackOptions, Strategy
from packtool.planning.plan import I64, Ints, Plan, index_type, offsets_of, ranges

_BATCH = 1 << 18  # documents that are looked at at a time


def plan(lengths: Ints, options: PackOptions) -> list[Plan]:
    """Fill the buckets of Algorithm 1, a plan for each size.

    >>> small, large = plan(np.array([3, 9, 4]), PackOptions(buckets=(4, 8)))
    >>> segments = large.segments(np.arange(large.rows))
    >>> segments.document, segments.start, segments.length, small.rows
    (array([1]), array([0]), array([8]), 2)
    """
    over, keys, key_counts = _sort_keys(lengths, options.buckets[-1])
    # A length n has the key L - n. The last key is that of longer documents, which are no items here.
    counts = np.append(0, np.flip(key_counts[:-1]))
    filled = compose(counts, lengths[over].tolist(), options.buckets, options.threshold)
    document, start, length, rows = np.array(filled.segments, np.int64).reshape(-1, 4).T
    # A `Segment` of several rows becomes one segment for every row. Places number documents, longest first.
    place, start, length = np.repeat(document, rows), np.repeat(start, rows), np.repeat(length, rows)
    inside = ranges(np.zeros(len(rows), np.int64), rows, offsets_of(rows))  # number of the row in its `Segment`
    start = start + inside * length
    # Segments are items longer than all others, so they lead the order: segments of cut documents, then whole
    # documents, longest first.
    order = np.concatenate([over, stable_order(keys, key_counts)[: int(counts.sum())]])
    items = np.concatenate([order[place], order[len(over) :]])
    item_counts = np.append(counts, len(place))

    def rows_of(size: int) -> Plan:
        runs = filled.runs.where(filled.capacity == size)
        placed, offsets = assign(items, item_counts, runs)
        segments = np.flatnonzero(runs.length > options.buckets[-1])
        bins = runs.bins[runs.run_of()[segments]]
        # A run of several bins that hold segments holds nothing else, so the segments lie one after the other.
        inside = offsets_of(bins)
        listed = ranges(runs.places()[segments], bins, inside)
        number = ranges(runs.first[segments], bins, inside)
        bins_of = Bins(placed, offsets, listed, start[number], length[number])
        return RowsPlan(size, lengths, bins=bins_of, whole=True)

    return list(map(rows_of, options.buckets))


def _sort_keys(lengths: Ints, largest: int) -> tuple[Ints, Keys, I64]:
    """Find documents longer than `largest`, longest first; and `largest` less the length of each document, counted.

    The key of a longer document is `largest`, so that it comes last.
    """
    keys: Keys = np.empty(len(lengths), np.uint16 if largest < 1 << 16 else np.uint32)
    counts = np.zeros(largest + 1, np.int64)
    longer = [np.empty(0, np.int64)]
    for first in range(0, len(lengths), _BATCH):
        key = largest - lengths[first : first + _BATCH].astype(np.int64)
        here = np.flatnonzero(key < 0)
        longer.append(here + first)
        key[here] = largest
        keys[first : first + _BATCH] = key
        counts += np.bincount(key, minlength=largest + 1)
    over = np.concatenate(longer).astype(index_type(len(lengths)))
    return over[np.argsort(-lengths[over].astype(np.int64), kind="stable")], keys, counts


STRATEGY = Strategy(
    name="buckets",
    summary="rows of several lengths, each document in the smallest that holds it",
    recommended=8,
    multi_bucket=True,
    windowed=True,
    plan=plan,
)
