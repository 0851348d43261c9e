"""First-fit and best-fit decreasing on the histogram of lengths: the bins of item by item, at a fraction of the cost.

Items of one length are alike, so both algorithms fill long runs of equal bins. Time grows with the number of distinct
lengths and of distinct bins, not with the number of items. Which item of a length lies where follows from two
numbers: items of one length are taken in their order, so a run needs only the first one.

Source: the greedy algorithms of Johnson, Near-optimal bin packing algorithms (1973), as used by Seamless Packing.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

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
    return _BestFit(counts, capacity).runs()


class _Layer(NamedTuple):
    """Items of one length that were put into bins alike, `each` in a bin; what lay in them before is `under`."""

    under: _Layer | None
    length: int
    each: int
    first_bin: int
    first_item: int


class _Group(NamedTuple):
    """Bins that were filled alike, so far."""

    first_bin: int
    bins: int
    top: _Layer | None


class _BestFit:
    def __init__(self, counts: Ints, capacity: int) -> None:
        present = [length for length in np.flatnonzero(counts).tolist() if length]
        self.shortest = present[0] if present else 0
        self.capacity = capacity
        self.rooms = _Rooms(capacity)
        self.opened = 0
        self.closed: list[_Group] = []
        for length in reversed(present):
            self._place(length, int(counts[length]))

    def _place(self, length: int, items: int) -> None:
        """Place all items of one length."""
        item = 0
        while item < items:
            room = self.rooms.least(length)
            each = (self.capacity if room is None else room) // length
            # No smaller room holds an item, so a bin takes one after the other until the next does not fit.
            wanted = -(-(items - item) // each)
            if room is None:
                room, group = self.capacity, _Group(self.opened, wanted, None)
                self.opened += wanted
            else:
                group = self.rooms.take(room, wanted)
            full = min(group.bins, (items - item) // each)
            if full:
                layer = _Layer(group.top, length, each, group.first_bin, item)
                self._keep(_Group(group.first_bin, full, layer), room - each * length)
                item += full * each
            if full < group.bins:
                last = group.first_bin + full
                layer = _Layer(group.top, length, items - item, last, item)
                self._keep(_Group(last, 1, layer), room - (items - item) * length)
                item = items

    def _keep(self, group: _Group, room: int) -> None:
        if room < self.shortest:
            self.closed.append(group)
        else:
            self.rooms.add(room, group)

    def runs(self) -> Runs:
        groups = self.closed + [group for queue in self.rooms.groups.values() for group in queue]
        runs: list[tuple[int, list[Entry]]] = []
        for first_bin, bins, top in sorted(groups, key=lambda group: group.first_bin):
            entries: list[Entry] = []
            layer = top
            while layer is not None:
                entries.append(
                    (layer.length, layer.each, layer.first_item + (first_bin - layer.first_bin) * layer.each)
                )
                layer = layer.under
            runs.append((bins, entries[::-1]))
        return Runs.of(runs)


class _Rooms:
    """Groups of bins by the room they have left; in each room, first come, first out.

    The rooms that occur are bits of words, with one summary word of the words that are not zero.
    """

    _BITS = 9

    def __init__(self, capacity: int) -> None:
        self.groups: dict[int, deque[_Group]] = {}
        self._words = [0] * ((capacity >> self._BITS) + 1)
        self._summary = 0

    def add(self, room: int, group: _Group) -> None:
        self.groups.setdefault(room, deque()).append(group)
        word = room >> self._BITS
        self._words[word] |= 1 << (room & ((1 << self._BITS) - 1))
        self._summary |= 1 << word

    def least(self, length: int) -> int | None:
        """The least room that holds an item of this length."""
        word, bit = length >> self._BITS, length & ((1 << self._BITS) - 1)
        here = self._words[word] >> bit if word < len(self._words) else 0
        if here:
            return length + _lowest(here)
        above = self._summary >> (word + 1)
        if not above:
            return None
        word += 1 + _lowest(above)
        return (word << self._BITS) + _lowest(self._words[word])

    def take(self, room: int, bins: int) -> _Group:
        """Take at most this many bins out of the first group of a room."""
        queue = self.groups[room]
        group = queue.popleft()
        if group.bins > bins:
            queue.appendleft(_Group(group.first_bin + bins, group.bins - bins, group.top))
            return _Group(group.first_bin, bins, group.top)
        if not queue:
            word = room >> self._BITS
            self._words[word] &= ~(1 << (room & ((1 << self._BITS) - 1)))
            if not self._words[word]:
                self._summary &= ~(1 << word)
        return group


def _lowest(bits: int) -> int:
    """The number of the lowest bit that is set."""
    return (bits & -bits).bit_length() - 1
