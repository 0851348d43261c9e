"""First-fit and best-fit decreasing on the histogram of lengths: the same bins, at a fraction of the cost.

Items of one length are alike, so both algorithms fill long runs of equal bins. Time grows with the number of distinct
lengths and of distinct bins, not with the number of items.

Source: the greedy algorithms of Johnson, Near-optimal bin packing algorithms (1973), as used by Seamless Packing.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque

import numpy as np

from packtool.planning.packing.bins.runs import Runs
from packtool.planning.plan import I64, Ints, offsets_of


def first_fit(counts: Ints, capacity: int) -> Runs:
    """Put each item, longest first, into the first bin that has room for it (first-fit decreasing).

    This is done bin by bin, with the same result: a bin takes the longest item left that fits, until no item fits.

    Args:
        counts: number of items of each length, from length 0, which is ignored; no length above `capacity`.
        capacity: tokens in a bin.

    >>> runs = first_fit(np.array([0, 0, 3, 1, 0, 2]), capacity=8)
    >>> runs.bins, runs.length, runs.count
    (array([1, 1, 1]), array([5, 3, 5, 2, 2]), array([1, 1, 1, 1, 2]))
    """
    left = counts.tolist()
    used = [0] * len(left)
    # longest_at_most[x] leads to the longest length of at most x that has items left; 0 is the end. A path that was
    # followed is cut short.
    longest_at_most = [length if items else length - 1 for length, items in enumerate(left)]
    longest_at_most[0] = 0
    longest = len(left) - 1
    bins_of: list[int] = []
    ends = [0]
    lengths: list[int] = []
    counts_of: list[int] = []
    firsts: list[int] = []
    while True:
        while longest_at_most[longest] != longest:
            longest = longest_at_most[longest]
        if not longest:
            break
        # The loop over the entries of a bin is where the time goes: no calls in it.
        room, length, bins = capacity, longest, left[longest]
        while length:
            items = left[length]
            count = items if items * length <= room else room // length
            lengths.append(length)
            counts_of.append(count)
            firsts.append(used[length])
            # As many bins in a row are equal as the scarcest of their lengths lasts.
            if bins * count > items:
                bins = items // count
            room -= count * length
            length = length - 1 if length <= room else room
            fits = length
            while longest_at_most[fits] != fits:
                fits = longest_at_most[fits]
            while length != fits:  # so that this path is not followed again
                following = longest_at_most[length]
                longest_at_most[length] = fits
                length = following
        for entry in range(ends[-1], len(lengths)):
            length, taken = lengths[entry], bins * counts_of[entry]
            used[length] += taken
            left[length] -= taken
            if not left[length]:
                longest_at_most[length] = length - 1
        bins_of.append(bins)
        ends.append(len(lengths))
    return Runs(*(np.array(column, np.int64) for column in (bins_of, ends, lengths, counts_of, firsts)))


def best_fit(counts: Ints, capacity: int) -> Runs:
    """Put each item, longest first, into the bin in which it leaves the least room (best-fit decreasing).

    Of bins with equal room, the one takes it that has had this room for longest. If no bin has room, a new one is
    opened.

    Args:
        counts: number of items of each length, from length 0, which is ignored; no length above `capacity`.
        capacity: tokens in a bin.

    >>> runs = best_fit(np.array([0, 1, 2, 0, 2, 1]), capacity=8)
    >>> [runs.length[a:b].tolist() for a, b in zip(runs.offsets, runs.offsets[1:])]
    [[5, 2, 1], [4], [2]]
    """
    present = [length for length in np.flatnonzero(counts).tolist() if length]
    # A layer is items put into consecutive bins alike; it lies on another, or on the floor, -1. As numbers in a row,
    # far quicker than objects: the layer under it, the length of its items, items in a bin, first bin, first item.
    layers: list[int] = []
    # Of each layer, the bins on which no other lies yet: the first, and how many.
    open_first: list[int] = []
    open_bins: list[int] = []
    # Layers with open bins by the room they leave, in the order in which they reached it; and the rooms that occur.
    waiting: dict[int, deque[int]] = {}
    rooms: list[int] = []
    opened = 0

    def fill(under: int, first_bin: int, bins: int, room: int, length: int, each: int, item: int) -> None:
        """Put a layer on bins that have `room` left."""
        layers.extend((under, length, each, first_bin, item))
        open_first.append(first_bin)
        open_bins.append(bins)
        room -= each * length
        if room < present[0]:
            return
        queue = waiting.get(room)
        if queue is None:
            queue = waiting[room] = deque()
        if not queue:
            insort(rooms, room)
        queue.append(len(open_bins) - 1)

    for length in reversed(present):
        items = int(counts[length])
        item = 0
        while item < items:
            # No smaller room holds an item, so a bin takes one after the other until the next does not fit.
            least = bisect_left(rooms, length)
            room = rooms[least] if least < len(rooms) else capacity
            each = room // length
            bins = -(-(items - item) // each)
            if least == len(rooms):
                under, first_bin = -1, opened
                opened += bins
            else:
                under = waiting[room][0]
                first_bin, bins = open_first[under], min(bins, open_bins[under])
                open_first[under] += bins
                open_bins[under] -= bins
                if not open_bins[under]:
                    waiting[room].popleft()
                    if not waiting[room]:
                        del rooms[least]
            full = min(bins, (items - item) // each)
            if full:
                fill(under, first_bin, full, room, length, each, item)
                item += full * each
            if full < bins:
                fill(under, first_bin + full, 1, room, length, items - item, item)
                item = items
    return _runs_of(layers, open_first, open_bins)


def _runs_of(layers: list[int], open_first: list[int], open_bins: list[int]) -> Runs:
    """List the layers in each run of bins that have the same layer on top; see `best_fit`."""
    if not layers:
        return Runs.of([])
    under, length, each, first_bin, first_item = np.array(layers, np.int64).reshape(-1, 5).T
    begin, bins = np.array(open_first, np.int64), np.array(open_bins, np.int64)
    # A layer that others have covered whole has no bins left: only what is on top of some bins begins a run.
    top = np.flatnonzero(bins)
    top = top[np.argsort(begin[top], kind="stable")]
    begin, bins = begin[top], bins[top]
    run = np.arange(len(bins))
    levels: list[tuple[I64, I64]] = []  # runs, and their layers at one depth; the top first
    # From each top downwards, all runs one layer at a time, until every run has reached the bottom of its bins.
    while len(top):
        levels.append((run, top))
        covers = under[top] >= 0
        run, top = run[covers], under[top[covers]]
    # Lowest layers first, then run after run.
    run, layer = (np.concatenate(column[::-1]) for column in zip(*levels, strict=True))
    order = np.argsort(run, kind="stable")
    run, layer = run[order], layer[order]
    # A layer below may begin bins before this run does: their items come first.
    skipped = (begin[run] - first_bin[layer]) * each[layer]
    offsets = offsets_of(np.bincount(run, minlength=len(bins)))
    return Runs(bins, offsets, length[layer], each[layer], first_item[layer] + skipped)
