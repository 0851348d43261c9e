"""Allocate arrays as long as the corpus, in memory or on disk; planners fill them block by block.

Planning touches no files. A function that makes such an array takes an `Arrays` to allocate it, and computes it with no
more in memory than a block; the caller decides where it lies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

BLOCK = 1 << 20
"""Items that are computed at a time."""


def blocks(count: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of at most `BLOCK` items.

    >>> list(blocks(BLOCK + 5))
    [(0, 1048576), (1048576, 1048581)]
    """
    for first in range(0, count, BLOCK):
        yield first, min(first + BLOCK, count)


class Arrays:
    """Allocates arrays in memory; a subclass that overrides `empty`, elsewhere.

    Attributes:
        sorted_at_once: items of an order that are sorted at a time, about: 24 bytes of memory each, wherever it lies.
    """

    sorted_at_once = 1 << 24

    def empty(self, count: int, dtype: Any) -> npt.NDArray[Any]:
        """Allocate an array of this many items without filling it."""
        return np.empty(count, dtype)

    def filled(self, count: int, dtype: Any, items: Callable[[int, int], Any]) -> npt.NDArray[Any]:
        """Make an array whose items ``first:last`` are ``items(first, last)``, block by block.

        >>> IN_MEMORY.filled(3, np.int64, lambda first, last: np.arange(first, last) ** 2)
        array([0, 1, 4])
        """
        out = self.empty(count, dtype)
        for first, last in blocks(count):
            out[first:last] = items(first, last)
        return out

    def totals(self, count: int, items: Callable[[int, int], Any]) -> npt.NDArray[np.int64]:
        """Compute running totals, from 0, of ``items(first, last)``, block by block.

        >>> IN_MEMORY.totals(3, lambda first, last: np.array([2, 0, 3]))
        array([0, 2, 2, 5])
        """
        out = self.empty(count + 1, np.int64)
        out[0] = 0
        for first, last in blocks(count):
            block = out[first + 1 : last + 1]
            np.cumsum(items(first, last), out=block)
            if first:
                block += out[first]
        return out

    def offsets(self, counts: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        """Add up running totals from 0, as `packtool.planning.plan.offsets_of` does, block by block.

        >>> IN_MEMORY.offsets(np.array([2, 0, 3]))
        array([0, 2, 2, 5])
        """
        return self.totals(len(counts), lambda first, last: counts[first:last])

    def where(self, count: int, chosen: Callable[[int, int], npt.NDArray[Any]], dtype: Any) -> npt.NDArray[Any]:
        """List the numbers below `count` for which ``chosen(first, last)`` is true, ascending.

        >>> IN_MEMORY.where(6, lambda first, last: np.arange(first, last) % 3 == 0, np.uint32)
        array([0, 3], dtype=uint32)
        """
        total = sum(int(np.count_nonzero(chosen(first, last))) for first, last in blocks(count))
        out, at = self.empty(total, dtype), 0
        for first, last in blocks(count):
            here = np.flatnonzero(chosen(first, last))
            np.add(here, first, out=out[at : at + len(here)], casting="unsafe")
            at += len(here)
        return out

    def concatenated(
        self, parts: Iterable[npt.NDArray[Any]], dtype: Any, shifts: Iterable[int] | None = None
    ) -> npt.NDArray[Any]:
        """Concatenate arrays, after adding a shift to each array if shifts are given.

        >>> IN_MEMORY.concatenated([np.array([0, 1]), np.array([0])], np.int64, [0, 5])
        array([0, 1, 5])
        """
        parts = list(parts)
        out, at = self.empty(sum(map(len, parts)), dtype), 0
        for part, shift in zip(parts, [0] * len(parts) if shifts is None else shifts, strict=True):
            np.add(part, shift, out=out[at : at + len(part)], casting="unsafe")
            at += len(part)
        return out


IN_MEMORY = Arrays()
"""The default."""
