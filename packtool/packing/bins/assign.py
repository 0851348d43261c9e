"""Assign documents to runs of bins: a radix sort by length in cache-sized blocks, then strided copies."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np

from packtool.packing.bins.groups import sorted_by
from packtool.packing.bins.runs import Runs
from packtool.plan import I64, Ints, index_type, offsets_of

Keys: TypeAlias = np.ndarray[Any, np.dtype[np.unsignedinteger[Any]]]

_SORTED = 1 << 17  # keys that are sorted at a time
_COPIED = 1 << 16  # items that are copied at a time
_LARGE = 1 << 8  # runs of at least this many items are copied one by one


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
    >>> from packtool.packing.bins.greedy import first_fit
    >>> assign(np.array([1, 2, 0]), counts, first_fit(counts, 5))
    (array([1, 0, 2]), array([0, 2, 3]))
    """
    width = runs.items()
    placed = np.empty(int(runs.bins @ width), order.dtype)
    run_start = offsets_of(runs.bins * width)[:-1]
    longer = counts[::-1].cumsum()[::-1] - counts
    source = longer[runs.length] + runs.first
    large = runs.bins * width >= _LARGE
    for run in np.flatnonzero(large).tolist():
        bins, each = int(runs.bins[run]), int(width[run])
        block = placed[run_start[run] : run_start[run] + bins * each].reshape(bins, each)
        entries = slice(runs.offsets[run], runs.offsets[run + 1])
        _fill_block(block, order, source[entries].tolist(), runs.count[entries].tolist())
    run_of = runs.run_of()
    table = np.stack([source, entry_places(runs), runs.bins[run_of], runs.count, width[run_of]])
    _copy_entries(placed, order, table[:, ~large[run_of]])
    return placed, offsets_of(np.repeat(width, runs.bins))


def entry_places(runs: Runs) -> I64:
    """Find where the items of each entry begin among the items of all bins."""
    run_of = runs.run_of()
    before = offsets_of(runs.count)[:-1]
    run_start = offsets_of(runs.bins * runs.items())[:-1]
    return run_start[run_of] + before - before[runs.offsets[run_of]]


def _fill_block(block: Ints, order: Ints, sources: list[int], counts: list[int]) -> None:
    """Fill a run of equal bins, a row of `block` each, some bins at a time so that they stay in the cache."""
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
    source, target, bins, count, width = entries
    for here, size, inside in some_entries(bins * count):
        bin, item = np.divmod(inside, np.repeat(count[here], size))
        to = np.repeat(target[here], size) + bin * np.repeat(width[here], size) + item
        placed[to] = order[np.repeat(source[here], size) + inside]


def some_entries(items: I64) -> Iterator[tuple[slice, I64, I64]]:
    """Yield entries, some at a time: which they are, how many items each has, and the number of each item in its entry.

    >>> [(here.stop, inside.tolist()) for here, _, inside in some_entries(np.array([2, 3]))]
    [(2, [0, 1, 0, 1, 2])]
    """
    ends = np.cumsum(items)
    first = 0
    while first < len(ends):
        last = int(np.searchsorted(ends, ends[first] + _COPIED, side="right"))
        size = items[first:last]
        yield slice(first, last), size, np.arange(size.sum()) - np.repeat(np.cumsum(size) - size, size)
        first = last
