"""Bucket composition: rows of several lengths, each begun by the longest document left, filled with shorter ones.

Few documents cut, few to a row, little padding; a trainer has to handle batches of several lengths.
Paper: Bucket Pre-training is All You Need, Algorithm 1.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from packtool.metrics.tally import Tally
from packtool.packing.bins.algorithm1 import compose
from packtool.packing.bins.assign import Keys, assign, entry_places, stable_order
from packtool.packing.bins.runs import Runs
from packtool.packing.options import PackOptions, Strategy
from packtool.packing.plans.bins_and_rows import Bins, RowsPlan
from packtool.packing.plans.counted import Counted
from packtool.plan import I64, Ints, Plan, Segments, index_type, offsets_of, pad, ranges

_BATCH = 1 << 18  # documents that are looked at at a time


def plan(lengths: Ints, options: PackOptions) -> list[Plan]:
    """Fill the buckets of Algorithm 1, a plan for each size.

    >>> small, large = plan(np.array([3, 9, 4]), PackOptions(buckets=(4, 8)))
    >>> segments = large.segments(np.arange(large.rows))
    >>> segments.document, segments.start, segments.length, small.rows
    (array([1]), array([0]), array([8]), 2)
    """
    filled = _Filled(lengths, options)
    return [filled.plan(size) for size in options.buckets]


def count(lengths: Ints, options: PackOptions) -> list[Counted]:
    """Count the rows of `plan`."""
    filled = _Filled(lengths, options)
    return [filled.count(size) for size in options.buckets]


class _Filled:
    """The buckets of Algorithm 1. Only a plan needs to know which document lies where.

    Items longer than the largest bucket stand for segments of documents that are cut, by number.
    """

    def __init__(self, lengths: Ints, options: PackOptions) -> None:
        self.lengths, self.largest = lengths, options.buckets[-1]
        self.over, self.keys, self.key_counts = _sort_keys(lengths, self.largest)
        self.counts = np.concatenate([[0], self.key_counts[-2::-1]])
        self.buckets = compose(self.counts, lengths[self.over].tolist(), options.buckets, options.threshold)
        segments = np.array(self.buckets.segments, np.int64).reshape(-1, 4)
        rows = segments[:, 3]
        # A segment of several rows is a segment for each of them. Places count documents, longest first.
        self.place, start, self.length = np.repeat(segments[:, :3], rows, axis=0).T
        self.start = start + ranges(np.zeros(len(rows), np.int64), rows, offsets_of(rows)) * self.length

    def plan(self, sequence_length: int) -> Plan:
        """Assign documents to the buckets of one size."""
        order, counts = self._items
        runs = self._runs(sequence_length)
        placed, offsets = assign(order, counts, runs)
        segments = np.flatnonzero(runs.length > self.largest)
        bins = runs.bins[runs.run_of()[segments]]
        # A run of several bins that hold segments holds nothing else, so the segments lie one after the other.
        inside = offsets_of(bins)
        listed = ranges(entry_places(runs)[segments], bins, inside)
        number = ranges(runs.first[segments], bins, inside)
        return RowsPlan(
            sequence_length,
            self.lengths,
            bins=Bins(placed, offsets, listed, self.start[number], self.length[number]),
            whole=True,
        )

    def count(self, sequence_length: int) -> Counted:
        """Count the buckets of one size: equal ones once, those with cut documents one by one."""
        tally, runs = Tally(self.lengths, sequence_length), self._runs(sequence_length)
        cut = np.bincount(runs.run_of(), runs.length > self.largest, minlength=len(runs.bins)) > 0
        alike = runs.where(~cut)
        length = np.repeat(alike.length, alike.count)
        zeros = np.zeros_like(length)
        rows = Segments(np.arange(len(length)), zeros, length, zeros, offsets_of(alike.items()))
        tally.add(rows, alike.bins, length)
        tally.padding += int((sequence_length - alike.tokens()) @ alike.bins)
        if cut.any():
            rows, whole = self._rows_of_segments(runs.where(cut))
            tally.add(pad(rows, sequence_length), lengths=whole)
        return Counted(tally)

    def _runs(self, sequence_length: int) -> Runs:
        return self.buckets.runs.where(self.buckets.capacity == sequence_length)

    @cached_property
    def _items(self) -> tuple[Ints, I64]:
        """What `assign` takes: the items, longest first, and how many there are of each length."""
        order = np.concatenate([self.over, stable_order(self.keys, self.key_counts)[: int(self.counts.sum())]])
        # Segments are items longer than all others, so they lead the order.
        return np.concatenate([order[self.place], order[len(self.over) :]]), np.append(self.counts, len(self.place))

    def _rows_of_segments(self, runs: Runs) -> tuple[Segments, I64]:
        """List rows that hold segments, and the lengths of the documents as these rows number them."""
        run = runs.run_of()
        is_segment = runs.length > self.largest
        # A run of several bins holds nothing but a segment in each.
        items = np.where(is_segment, runs.bins[run], runs.count)
        entry = np.repeat(np.arange(len(items)), items)
        inside = ranges(np.zeros(len(items), np.int64), items, offsets_of(items))
        of_segment = is_segment[entry]
        number = (runs.first[entry] + inside)[of_segment]
        length, start, whole = runs.length[entry], np.zeros(len(entry), np.int64), runs.length[entry]
        length[of_segment], start[of_segment] = self.length[number], self.start[number]
        whole[of_segment] = self._whole(self.place[number])
        # Each whole document is one of its own; segments of one document share its number.
        document = np.arange(len(entry))
        places, same = np.unique(self.place[number], return_inverse=True)
        document[of_segment] = len(entry) + same
        known = np.zeros(len(entry) + len(places), np.int64)
        known[document] = whole
        row_items = np.bincount(run, items, minlength=len(runs.bins)).astype(np.int64)
        several = runs.bins > 1
        sizes = np.repeat(np.where(several, 1, row_items), np.where(several, row_items, 1))
        return Segments(document, start, length, np.zeros_like(start), offsets_of(sizes)), known

    def _whole(self, place: I64) -> I64:
        """Look up the tokens of the documents at these places."""
        longest_first = np.flatnonzero(self.counts)[::-1]
        at = np.searchsorted(np.cumsum(self.counts[longest_first]), place - len(self.over), side="right")
        tokens = np.append(longest_first, 0)[np.minimum(at, len(longest_first))]
        longer = place < len(self.over)
        tokens[longer] = self.lengths[self.over[place[longer]]]
        return tokens


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
    paper="Bucket Pre-training is All You Need, Algorithm 1",
    multi_bucket=True,
    windowed=True,
    plan=plan,
    count=count,
)
