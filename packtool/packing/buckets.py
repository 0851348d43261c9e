"""Bucket composition: rows of several lengths, each begun by the longest document left, filled with shorter ones.

Few documents cut, few to a row, little padding; a trainer has to handle batches of several lengths.
Paper: Bucket Pre-training is All You Need, Algorithm 1.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from packtool.metrics.tally import Tally
from packtool.packing.bins.algorithm1 import compose
from packtool.packing.bins.runs import Keys, Runs, assign, stable_order
from packtool.packing.plans import Bins, RowsPlan
from packtool.packing.strategy import Counted, PackOptions, Strategy
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
        return self._rows(self._runs(sequence_length), sequence_length, self._order, self.lengths)

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
            # Any documents of these lengths do: here they are numbered longest first.
            lengths = self._longest_first
            number = np.arange(len(lengths), dtype=self.over.dtype)
            plan = self._rows(runs.where(cut), sequence_length, number, lengths)
            tally.add(pad(plan.segments(np.arange(plan.units)), sequence_length), lengths=lengths)
        return Counted(tally)

    def _runs(self, sequence_length: int) -> Runs:
        return self.buckets.runs.where(self.buckets.capacity == sequence_length)

    @cached_property
    def _longest_first(self) -> Ints:
        """Lengths of the documents, longest first."""
        lengths = np.arange(len(self.counts), dtype=self.lengths.dtype)[::-1]
        return np.concatenate([self.lengths[self.over], np.repeat(lengths, self.counts[::-1])])

    @cached_property
    def _order(self) -> Ints:
        """Documents, longest first."""
        return np.concatenate([self.over, stable_order(self.keys, self.key_counts)[: int(self.counts.sum())]])

    def _rows(self, runs: Runs, sequence_length: int, order: Ints, lengths: Ints) -> RowsPlan:
        """Assign documents of these lengths, given longest first, to bins."""
        # Segments are items longer than all others, so they lead the order.
        items = np.concatenate([order[self.place], order[len(self.over) :]])
        placed, offsets = assign(items, np.append(self.counts, len(self.place)), runs)
        segments = np.flatnonzero(runs.length > self.largest)
        bins = runs.bins[runs.run_of()[segments]]
        # A run of several bins that hold segments holds nothing else, so the segments lie one after the other.
        inside = offsets_of(bins)
        listed = ranges(runs.places()[segments], bins, inside)
        number = ranges(runs.first[segments], bins, inside)
        bins_of = Bins(placed, offsets, listed, self.start[number], self.length[number])
        return RowsPlan(sequence_length, lengths, bins=bins_of, whole=True)


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
    multi_bucket=True,
    windowed=True,
    plan=plan,
    count=count,
)
