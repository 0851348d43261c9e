"""Buckets: equal ones are counted once and multiplied; those with cut documents are counted one by one."""

from __future__ import annotations

import numpy as np

from packtool.comparing.counting.counted import Counted
from packtool.metrics import LengthCounts, Tally
from packtool.packing import PackOptions
from packtool.packing.bins.algorithm1 import Buckets, compose
from packtool.packing.bins.runs import Runs
from packtool.packing.plans.windows import in_windows
from packtool.plan import I64, Ints, Segments, offsets_of, ranges
from packtool.writing.layout import pad


def buckets(lengths: Ints, options: PackOptions) -> list[Counted] | None:
    """The buckets of Algorithm 1."""
    sizes = tuple(sorted(options.bucket_sizes))
    found = [Counted(Tally(lengths, size)) for size in sizes]
    for window in in_windows([lengths], options.window_tokens):
        known = LengthCounts.of(window)
        counts = np.zeros(sizes[-1] + 1, np.int64)
        fits = known.values <= sizes[-1]
        counts[known.values[fits]] = known.counts[fits]
        over = np.repeat(known.values[~fits], known.counts[~fits])[::-1]
        filled = compose(counts, over.tolist(), sizes, options.threshold)
        of_segments = _SegmentRows(filled, over, counts)
        for counted, size in zip(found, sizes, strict=True):
            runs = filled.runs.where(filled.capacity == size)
            cut = np.bincount(runs.run_of(), runs.length > sizes[-1], minlength=len(runs.bins)) > 0
            _count_alike(counted.tally, runs.where(~cut))
            of_segments.count(counted.tally, runs.where(cut))
    return found


def _count_alike(tally: Tally, runs: Runs) -> None:
    """Bins of whole documents."""
    length = np.repeat(runs.length, runs.count)
    zeros = np.zeros_like(length)
    tally.add(Segments(np.arange(len(length)), zeros, length, zeros, offsets_of(runs.items())), runs.bins, length)
    tally.padding += int((tally.sequence_length - runs.tokens()) @ runs.bins)


class _SegmentRows:
    """Bins that hold segments of cut documents."""

    def __init__(self, filled: Buckets, over: I64, counts: I64) -> None:
        segments = np.array(filled.segments, np.int64).reshape(-1, 4)
        rows = segments[:, 3]
        self.place, start, self.length = np.repeat(segments[:, :3], rows, axis=0).T
        number = ranges(np.zeros(len(rows), np.int64), rows, offsets_of(rows))
        self.start = start + number * self.length
        longest_first = np.flatnonzero(counts)[::-1]
        ends = np.cumsum(counts[longest_first])
        fits = np.searchsorted(ends, self.place - len(over), side="right")
        whole = np.append(longest_first, 0)[np.minimum(fits, len(longest_first))]
        is_over = self.place < len(over)
        whole[is_over] = over[self.place[is_over]]
        self.whole = whole
        self.largest = len(counts) - 1

    def count(self, tally: Tally, runs: Runs) -> None:
        """Count these bins; a run of several holds nothing but a segment in each."""
        run = runs.run_of()
        is_segment = runs.length > self.largest
        items = np.where(is_segment, runs.bins[run], runs.count)
        offsets = offsets_of(items)
        entry = np.repeat(np.arange(len(items)), items)
        inside = ranges(np.zeros(len(items), np.int64), items, offsets)
        of_segment = is_segment[entry]
        number = (runs.first[entry] + inside)[of_segment]
        length, start, whole = runs.length[entry], np.zeros(len(entry), np.int64), runs.length[entry]
        length[of_segment], start[of_segment] = self.length[number], self.start[number]
        whole[of_segment] = self.whole[number]
        # Each whole document is one of its own; segments of one document share its number.
        document = np.arange(len(entry))
        places, same = np.unique(self.place[number], return_inverse=True)
        document[of_segment] = len(entry) + same
        known = np.zeros(len(entry) + len(places), np.int64)
        known[document] = whole
        row_items = np.bincount(run, items, minlength=len(runs.bins)).astype(np.int64)
        several = runs.bins > 1
        sizes = np.repeat(np.where(several, 1, row_items), np.where(several, row_items, 1))
        segments = Segments(document, start, length, np.zeros_like(start), offsets_of(sizes))
        if len(sizes):
            tally.add(pad(segments, tally.sequence_length), lengths=known)
