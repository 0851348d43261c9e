"""Bucket composition: rows of several lengths, each begun by the longest document left, filled with shorter ones.

Few documents cut, few to a row, little padding; a trainer has to handle batches of several lengths.
Paper: Bucket Pre-training is All You Need, Algorithm 1.
"""

from __future__ import annotations

import numpy as np

from packtool.packing.bins.algorithm1 import Buckets, compose
from packtool.packing.bins.assign import Keys, assign, entry_places, stable_order
from packtool.packing.options import PackOptions, Strategy
from packtool.packing.plans.rows import Bins, LongRows, RowsPlan
from packtool.plan import I64, Ints, Plan, index_type, offsets_of, ranges

_BATCH = 1 << 18  # documents that are looked at at a time


def plan(lengths: Ints, options: PackOptions) -> list[Plan]:
    """The buckets of Algorithm 1, a plan for each size.

    >>> small, large = plan(np.array([3, 9, 4]), PackOptions(buckets=(4, 8)))
    >>> segments = large.segments(np.arange(large.rows))
    >>> segments.document, segments.start, segments.length, small.rows
    (array([1]), array([0]), array([8]), 2)
    """
    sizes = options.bucket_sizes
    over, keys, key_counts = _sort_keys(lengths, sizes[-1])
    counts = np.concatenate([[0], key_counts[-2::-1]])
    filled = compose(counts, lengths[over].tolist(), sizes, options.threshold)
    order = np.concatenate([over, stable_order(keys, key_counts)[: int(counts.sum())]])
    document, start, length = _rows_of(filled, order)
    # To `assign`, segments are items longer than all others, so they lead the order.
    order = np.concatenate([document, order[len(over) :]])
    counts = np.append(counts, len(document))
    plans: list[Plan] = []
    for sequence_length in sizes:
        runs = filled.runs.where(filled.capacity == sequence_length)
        placed, offsets = assign(order, counts, runs)
        segments = np.flatnonzero(runs.length > sizes[-1])
        bins = runs.bins[runs.run_of()[segments]]
        # A run of several bins that hold segments holds nothing else, so the segments lie one after the other.
        inside = offsets_of(bins)
        listed = ranges(entry_places(runs)[segments], bins, inside)
        number = ranges(runs.first[segments], bins, inside)
        plans.append(
            RowsPlan(
                sequence_length,
                lengths,
                long=LongRows(np.empty(0, order.dtype), np.zeros(1, np.int64)),
                bins=Bins(placed, offsets, listed, start[number], length[number]),
                whole=True,
            )
        )
    return plans


def _sort_keys(lengths: Ints, largest: int) -> tuple[Ints, Keys, I64]:
    """Documents longer than `largest`, longest first; of all documents, `largest` minus their length, and its counts.

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


def _rows_of(filled: Buckets, order: Ints) -> tuple[Ints, I64, I64]:
    """Document, start and length of each row of the segments."""
    segments = np.array(filled.segments, np.int64).reshape(-1, 4)
    rows = segments[:, 3]
    place, start, length = np.repeat(segments[:, :3], rows, axis=0).T
    number = ranges(np.zeros(len(rows), np.int64), rows, offsets_of(rows))
    return order[place], start + number * length, length


STRATEGY = Strategy(
    name="buckets",
    summary="rows of several lengths, each document in the smallest that holds it",
    paper="Bucket Pre-training is All You Need, Algorithm 1",
    multi_bucket=True,
    windowed=True,
    plan=plan,
)
