"""First-fit and best-fit decreasing on the histogram of lengths: the bins of item by item, at a fraction of the cost.

Items of one length are alike, so both algorithms fill long runs of equal bins. Time grows with the number of distinct
lengths and of distinct bins, not with the number of items. Which item of a length lies where follows from two
numbers: items of one length are taken in their order, so a run needs only the first one.

Source: the greedy algorithms of Johnson, Near-optimal bin packing algorithms (1973), as used by Seamless Packing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from packtool.plan import I64, Ints, offsets_of

Entry = tuple[int, int, int]
"""Length, items of that length in each bin, first of them among the items of that length."""


@dataclass(frozen=True)
class Runs:
    """Runs of equal bins, in bin order, as columns.

    Bin j of run i takes, for each entry e in ``offsets[i]:offsets[i + 1]``, `count[e]` items of length `length[e]`:
    those from ``first[e] + j * count[e]`` on among the items of that length.

    Attributes:
        bins: bins in each run.
        offsets: runs + 1; the entries of each run, in the order in which they were placed.
        length: item length of each entry.
        count: items of each entry in a bin.
        first: first item of each entry.
    """

    bins: I64
    offsets: I64
    length: I64
    count: I64
    first: I64

    @classmethod
    def of(cls, runs: list[tuple[int, list[Entry]]]) -> Runs:
        """Columns from a list of (bins, entries)."""
        entries = np.array([number for _, bin in runs for entry in bin for number in entry], np.int64).reshape(-1, 3)
        return cls(
            np.array([bins for bins, _ in runs], np.int64),
            offsets_of(np.array([len(bin) for _, bin in runs], np.int64)),
            *(np.ascontiguousarray(column) for column in entries.T),
        )

    @classmethod
    def join(cls, parts: Sequence[Runs]) -> Runs:
        """Runs one after the other."""
        return cls(
            np.concatenate([runs.bins for runs in parts]),
            offsets_of(np.concatenate([np.diff(runs.offsets) for runs in parts])),
            np.concatenate([runs.length for runs in parts]),
            np.concatenate([runs.count for runs in parts]),
            np.concatenate([runs.first for runs in parts]),
        )

    def after(self, used: I64) -> Runs:
        """The same bins, where of each length the first `used` items are taken already."""
        return replace(self, first=self.first + used[self.length])

    def run_of(self) -> I64:
        """The run of each entry."""
        return np.repeat(np.arange(len(self.bins)), np.diff(self.offsets))

    def items(self) -> I64:
        """Items in a bin of each run."""
        ends = offsets_of(self.count)
        return ends[self.offsets[1:]] - ends[self.offsets[:-1]]

    def tokens(self) -> I64:
        """Tokens in a bin of each run."""
        ends = offsets_of(self.count * self.length)
        return ends[self.offsets[1:]] - ends[self.offsets[:-1]]

    def where(self, wanted: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Runs:
        """The wanted runs alone; `first` still counts among all items of a length."""
        kept = wanted[self.run_of()]
        return Runs(
            self.bins[wanted],
            offsets_of(np.diff(self.offsets)[wanted]),
            self.length[kept],
            self.count[kept],
            self.first[kept],
        )


def first_fit(counts: Ints, capacity: int) -> Runs:
    """First-fit decreasing: each item, longest first, goes to the first bin that has room for it.

    Equally, bin by bin: each bin takes the longest item left that fits, until none does.

    Args:
        counts: number of items of each length, from length 0, which is ignored; no length above `capacity`.
        capacity: tokens in a bin.

    >>> runs = first_fit(np.array([0, 0, 3, 1, 0, 2]), capacity=8)
    >>> runs.bins, runs.length, runs.count
    (array([1, 1, 1]), array([5, 3, 5, 2, 2]), array([1, 1, 1, 1, 2]))
    """
    left = counts.tolist()
    used = [0] * len(left)
    # below[x] leads to the longest length of at most x that has items left; 0 is the end.
    below = [length if items else length - 1 for length, items in enumerate(left)]
    below[0] = 0

    def longest(limit: int) -> int:
        found = limit
        while below[found] != found:
            found = below[found]
        while below[limit] != found:
            below[limit], limit = found, below[limit]
        return found

    runs: list[tuple[int, list[Entry]]] = []
    while length := longest(len(left) - 1):
        room = capacity
        entries: list[Entry] = []
        bins = left[length]
        while length:
            count = min(room // length, left[length])
            entries.append((length, count, used[length]))
            bins = min(bins, left[length] // count)
            room -= count * length
            length = longest(min(length - 1, room))
        for length, count, _ in entries:
            used[length] += bins * count
            left[length] -= bins * count
            if not left[length]:
                below[length] = length - 1
        runs.append((bins, entries))
    return Runs.of(runs)


def best_fit(counts: Ints, capacity: int) -> Runs:
    """Best-fit decreasing: each item, longest first, goes to the bin in which it leaves the least room.

    Of bins with equal room, the one that reached it first. A new bin is opened where none has room.

    Args:
        counts: number of items of each length, from length 0, which is ignored; no length above `capacity`.
        capacity: tokens in a bin.

    >>> runs = best_fit(np.array([0, 1, 2, 0, 2, 1]), capacity=8)
    >>> [runs.length[a:b].tolist() for a, b in zip(runs.offsets, runs.offsets[1:])]
    [[5, 2, 1], [4], [2]]
    """
    present = [length for length in np.flatnonzero(counts).tolist() if length]
    if not present:
        return Runs.of([])
    rooms = _Rooms(capacity, shortest=present[0])
    layers = _Layers()
    opened = 0
    for length in reversed(present):
        items = int(counts[length])
        item = 0
        while item < items:
            # No smaller room holds an item, so a bin takes one after the other until the next does not fit.
            room = rooms.least(length)
            if room is None:
                room = capacity
                each = room // length
                first_bin, bins, under = opened, -(-(items - item) // each), -1
                opened += bins
            else:
                each = room // length
                first_bin, bins, under = rooms.take(room, -(-(items - item) // each))
            full = min(bins, (items - item) // each)
            if full:
                layer = layers.add(under, length, each, first_bin, item)
                rooms.add(room - each * length, (first_bin, full, layer))
                item += full * each
            if full < bins:
                last, rest = first_bin + full, items - item
                layer = layers.add(under, length, rest, last, item)
                rooms.add(room - rest * length, (last, 1, layer))
                item = items
    return layers.runs(rooms.all())


_Group: TypeAlias = tuple[int, int, int]
"""Bins filled alike: the first of them, how many, the layer on top."""


class _Layers:
    """Items that were put into bins alike, one layer on another.

    There are tens of thousands: columns of numbers take a fraction of the time of objects.
    """

    def __init__(self) -> None:
        self._under: list[int] = []
        self._length: list[int] = []
        self._each: list[int] = []
        self._first_bin: list[int] = []
        self._first_item: list[int] = []

    def add(self, under: int, length: int, each: int, first_bin: int, first_item: int) -> int:
        """A layer: the one under it (or -1), its items' length, items in a bin, first bin, first item."""
        self._under.append(under)
        self._length.append(length)
        self._each.append(each)
        self._first_bin.append(first_bin)
        self._first_item.append(first_item)
        return len(self._under) - 1

    def runs(self, groups: list[_Group]) -> Runs:
        """The runs of these groups of bins, which begin at different bins."""
        columns = (self._under, self._length, self._each, self._first_bin, self._first_item)
        under, length, each, layer_bin, item = (np.array(column, np.int64) for column in columns)
        first_bin, bins, top = np.array(sorted(groups), np.int64).T
        run = np.arange(len(bins))
        found: list[tuple[I64, I64]] = []
        while len(top):
            found.append((run, top))
            covers = under[top] >= 0
            run, top = run[covers], under[top[covers]]
        # Lowest layers first, then run after run.
        run, layer = (np.concatenate(column[::-1]) for column in zip(*found, strict=True))
        order = np.argsort(run, kind="stable")
        run, layer = run[order], layer[order]
        skipped = first_bin[run] - layer_bin[layer]
        offsets = offsets_of(np.bincount(run, minlength=len(bins)))
        return Runs(bins, offsets, length[layer], each[layer], item[layer] + skipped * each[layer])


class _Rooms:
    """Groups of bins by the room they have left; in each room, first come, first out.

    The rooms that occur are bits of words, with one summary word of the words that are not zero; all words are about as
    long as there are words.
    """

    def __init__(self, capacity: int, shortest: int) -> None:
        self._shortest = shortest
        self._groups: dict[int, deque[_Group]] = {}
        self._closed: list[_Group] = []
        self._bits = (capacity.bit_length() + 1) // 2
        self._mask = (1 << self._bits) - 1
        self._words = [0] * ((capacity >> self._bits) + 1)
        self._summary = 0

    def add(self, room: int, group: _Group) -> None:
        """Groups without room for the shortest item are closed."""
        if room < self._shortest:
            self._closed.append(group)
            return
        queue = self._groups.get(room)
        if queue:
            queue.append(group)
            return
        if queue is None:
            self._groups[room] = deque((group,))
        else:
            queue.append(group)
        word = room >> self._bits
        self._words[word] |= 1 << (room & self._mask)
        self._summary |= 1 << word

    def least(self, length: int) -> int | None:
        """The least room that holds an item of this length."""
        word = length >> self._bits
        here = self._words[word] >> (length & self._mask)
        if here:
            return length + (here & -here).bit_length() - 1
        above = self._summary >> (word + 1)
        if not above:
            return None
        word += (above & -above).bit_length()
        here = self._words[word]
        return (word << self._bits) + (here & -here).bit_length() - 1

    def take(self, room: int, bins: int) -> _Group:
        """Take at most this many bins out of the first group of a room."""
        queue = self._groups[room]
        group = queue.popleft()
        first_bin, there, top = group
        if there > bins:
            queue.appendleft((first_bin + bins, there - bins, top))
            return first_bin, bins, top
        if not queue:
            word = room >> self._bits
            self._words[word] ^= 1 << (room & self._mask)
            if not self._words[word]:
                self._summary ^= 1 << word
        return group

    def all(self) -> list[_Group]:
        return self._closed + [group for queue in self._groups.values() for group in queue]
