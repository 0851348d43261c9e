"""Runs of equal bins, and the documents in them.

The greedy algorithms fill bins before it is decided which document lies where. Items of one length are taken in their
order, so a run needs only the number of the first one; documents are then sorted by length and copied to their bins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from packtool.planning.plan import I64, Ints, index_type, offsets_of

RunEntry = tuple[int, int, int]
"""Length, items of that length in each bin, first of them among the items of that length."""
Keys: TypeAlias = npt.NDArray[np.unsignedinteger[Any]]

_SORTED = 1 << 17  # keys that are sorted at a time
_COPIED = 1 << 16  # items that are copied at a time
_LARGE = 1 << 8  # runs of at least this many items are copied one by one


@dataclass(frozen=True)
class Runs:
    """Runs of equal bins, in bin order, as columns.

    Bin j of run i takes, for each entry e in ``offsets[i]:offsets[i + 1]``, `count[e]` items of length `length[e]`:
    starting from item ``first[e] + j * count[e]`` of that length.
    """

    bins: I64  # bins in each run
    offsets: I64  # runs + 1; the entries of each run, in the order in which they were placed
    length: I64  # item length of each entry
    count: I64  # items of each entry in a bin
    first: I64  # first item of each entry

    @classmethod
    def of(cls, runs: list[tuple[int, list[RunEntry]]]) -> Runs:
        """Make columns from a list of (bins, entries)."""
        entries: list[RunEntry] = []
        counts = []
        for bins, entries_of_bin in runs:
            entries += entries_of_bin
            counts.append((bins, len(entries_of_bin)))
        length, count, first = np.array(entries, np.int64).reshape(-1, 3).T.copy()
        bins_of, sizes = np.array(counts, np.int64).reshape(-1, 2).T.copy()
        return cls(bins_of, offsets_of(sizes), length, count, first)

    @classmethod
    def join(cls, parts: Sequence[Runs]) -> Runs:
        """Concatenate runs."""
        columns = [(runs.bins, np.diff(runs.offsets), runs.length, runs.count, runs.first) for runs in parts]
        bins, sizes, length, count, first = map(np.concatenate, zip(*columns, strict=True))
        return cls(bins, offsets_of(sizes), length, count, first)

    def run_of(self) -> I64:
        """Find the run of each entry."""
        return np.repeat(np.arange(len(self.bins)), np.diff(self.offsets))

    def items(self) -> I64:
        """Count the items in a bin of each run."""
        return np.diff(offsets_of(self.count).take(self.offsets))

    def tokens(self) -> I64:
        """Count the tokens in a bin of each run."""
        return np.diff(offsets_of(self.count * self.length).take(self.offsets))

    def where(self, wanted: npt.NDArray[np.bool_]) -> Runs:
        """Select runs; `first` still counts among all items of a length."""
        kept = wanted[self.run_of()]
        return Runs(
            self.bins[wanted],
            offsets_of(np.diff(self.offsets)[wanted]),
            self.length[kept],
            self.count[kept],
            self.first[kept],
        )

    def places(self) -> I64:
        """Find where the items of each entry begin among the items of all bins."""
        run_of = self.run_of()
        before = offsets_of(self.count)[:-1]
        run_start = offsets_of(self.bins * self.items())[:-1]
        return run_start[run_of] + before - before[self.offsets[run_of]]


def longer_than(counts: I64) -> I64:
    """Count the items longer than each length, from the number of items of each length.

    >>> longer_than(np.array([0, 2, 1]))
    array([3, 1, 0])
    """
    longer: I64 = counts[::-1].cumsum()[::-1] - counts
    return longer


def sorted_by(key: Keys, rank: Keys | None = None) -> I64:
    """Sort indices by key, rank and index.

    Digit by digit, the lowest first: NumPy sorts indices of 16 bits by counting, several times as fast as by comparing.

    >>> sorted_by(np.array([2, 1, 2, 1 << 20], np.uint64), np.array([9, 0, 3, 0], np.uint64))
    array([1, 2, 0, 3])
    """
    number: npt.NDArray[Any] = key if rank is None else key << np.uint64(int(rank.max(initial=0)).bit_length()) | rank
    order = np.argsort(number.astype(np.uint16, copy=False), kind="stable")
    for low in range(16, int(number.max(initial=0)).bit_length(), 16):
        digit = (number >> np.uint64(low)).astype(np.uint16)
        order = order.take(np.argsort(digit.take(order), kind="stable"))
    return order


def stable_order(keys: Keys, counts: I64) -> Ints:
    """Sort indices by their keys, ties by index.

    Sorting a large array by radix misses the cache at every step. Blocks are sorted in the cache instead, and the equal
    keys of each block moved to their place in one go.

    Args:
        keys: of type uint16 or uint32.
        counts: how often each key occurs, from key 0.

    >>> stable_order(np.array([3, 1, 3, 0], np.uint16), np.array([1, 1, 0, 2]))
    array([3, 1, 0, 2], dtype=uint32)
    """
    order = np.empty(len(keys), index_type(len(keys)))
    place = offsets_of(counts)[:-1]
    for first in range(0, len(keys), _SORTED):
        block = keys[first : first + _SORTED]
        here = np.bincount(block, minlength=len(counts))
        inside = sorted_by(block)
        target = np.arange(len(block)) + np.repeat(place - (np.cumsum(here) - here), here)
        order[target] = inside + first
        place += here
    return order


def assign(order: Ints, counts: I64, runs: Runs) -> tuple[Ints, I64]:
    """List the items of each bin, in the order in which they were placed.

    Args:
        order: the items, longest first, ties in their own order.
        counts: number of items of each length.
        runs: the bins.

    Returns:
        Items, bin after bin (of the type of `order`), and bins + 1 offsets into them.

    >>> counts = np.array([0, 0, 1, 2])
    >>> from packtool.planning.packing.bins.greedy import first_fit
    >>> assign(np.array([1, 2, 0]), counts, first_fit(counts, 5))
    (array([1, 0, 2]), array([0, 2, 3]))
    """
    width = runs.items()
    placed = np.empty(int(runs.bins @ width), order.dtype)
    run_start = offsets_of(runs.bins * width)[:-1]
    source = longer_than(counts)[runs.length] + runs.first
    large = runs.bins * width >= _LARGE
    for run in np.flatnonzero(large).tolist():
        bins, each = int(runs.bins[run]), int(width[run])
        block = placed[run_start[run] : run_start[run] + bins * each].reshape(bins, each)
        entries = slice(runs.offsets[run], runs.offsets[run + 1])
        _fill_block(block, order, source[entries].tolist(), runs.count[entries].tolist())
    run_of = runs.run_of()
    table = np.stack([source, runs.places(), runs.bins[run_of], runs.count, width[run_of]])
    _copy_entries(placed, order, table[:, ~large[run_of]])
    return placed, offsets_of(np.repeat(width, runs.bins))


def _fill_block(block: Ints, order: Ints, sources: list[int], counts: list[int]) -> None:
    """Fill a run of equal bins, which are the rows of `block`, some bins at a time so that they stay in the cache."""
    step = max(1, _COPIED // block.shape[1])
    for first in range(0, len(block), step):
        bins = block[first : first + step]
        column = 0
        for source, count in zip(sources, counts, strict=True):
            begin = source + first * count
            items = order[begin : begin + len(bins) * count]
            if count == 1:
                bins[:, column] = items
            else:
                bins[:, column : column + count] = items.reshape(len(bins), count)
            column += count


def _copy_entries(placed: Ints, order: Ints, entries: I64) -> None:
    """Copy small entries, many together.

    Args:
        entries: columns of source, target, bins, items in a bin, and items from one bin to the next.
    """
    sources, targets, bins, counts, widths = entries
    items = bins * counts
    ends = np.cumsum(items)
    first = 0
    while first < len(ends):
        # At least one entry: those of large runs, which may be longer than a batch, were copied before.
        last = int(np.searchsorted(ends, ends[first] + _COPIED, side="right"))
        size = items[first:last]
        # All arrays from here on have an element for each item: its place in its entry, then what its entry says.
        inside = np.arange(size.sum()) - np.repeat(np.cumsum(size) - size, size)
        part = slice(first, last)
        source, target = np.repeat(sources[part], size), np.repeat(targets[part], size)
        count, width = np.repeat(counts[part], size), np.repeat(widths[part], size)
        # Items of an entry follow each other in `order`; in `placed` each bin has `count` of them.
        bin, item = np.divmod(inside, count)
        placed[target + bin * width + item] = order[source + inside]
        first = last
