"""Room for large arrays: in memory, or on disk, as whoever calls a planning function wants it.

Planning touches no files. So what may be as long as the corpus is made here, and worked out in blocks, with no more in
memory than a block; where the array lies is the caller's affair.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
import numpy.typing as npt

Maker = Callable[[int, Any], npt.NDArray[Any]]
"""(number of items, dtype) to an array of them, not filled."""

LARGE = 1 << 20
"""Bytes from which an array is worth a file."""
BLOCK = 1 << 20
"""Items that are worked out at a time."""

_maker: ContextVar[Maker] = ContextVar("maker", default=np.empty)


@contextmanager
def made_by(maker: Maker) -> Iterator[None]:
    """Large arrays that this thread makes meanwhile are made by this function."""
    before = _maker.set(maker)
    try:
        yield
    finally:
        _maker.reset(before)


def empty(count: int, dtype: Any) -> npt.NDArray[Any]:
    """Room for so many items."""
    make = _maker.get()
    return np.empty(count, dtype) if count * np.dtype(dtype).itemsize < LARGE else make(count, dtype)


def blocks(count: int) -> Iterator[tuple[int, int]]:
    """Ranges of at most `BLOCK` items.

    >>> list(blocks(BLOCK + 5))
    [(0, 1048576), (1048576, 1048581)]
    """
    for first in range(0, count, BLOCK):
        yield first, min(first + BLOCK, count)


def filled(count: int, dtype: Any, items: Callable[[int, int], Any]) -> npt.NDArray[Any]:
    """An array whose items ``first:last`` are ``items(first, last)``, block by block.

    >>> filled(3, np.int64, lambda first, last: np.arange(first, last) ** 2)
    array([0, 1, 4])
    """
    out = empty(count, dtype)
    for first, last in blocks(count):
        out[first:last] = items(first, last)
    return out


def totals(count: int, items: Callable[[int, int], Any]) -> npt.NDArray[np.int64]:
    """Running totals from 0 of ``items(first, last)``, block by block.

    >>> totals(3, lambda first, last: np.array([2, 0, 3]))
    array([0, 2, 2, 5])
    """
    out = empty(count + 1, np.int64)
    out[0] = 0
    for first, last in blocks(count):
        block = out[first + 1 : last + 1]
        np.cumsum(items(first, last), out=block)
        if first:
            block += out[first]
    return out


def where(count: int, chosen: Callable[[int, int], npt.NDArray[Any]], dtype: Any) -> npt.NDArray[Any]:
    """Numbers below `count` that ``chosen(first, last)`` holds true, ascending.

    >>> where(6, lambda first, last: np.arange(first, last) % 3 == 0, np.uint32)
    array([0, 3], dtype=uint32)
    """
    total = sum(int(np.count_nonzero(chosen(first, last))) for first, last in blocks(count))
    out, at = empty(total, dtype), 0
    for first, last in blocks(count):
        found = np.flatnonzero(chosen(first, last))
        np.add(found, first, out=out[at : at + len(found)], casting="unsafe")
        at += len(found)
    return out


def joined(parts: Iterable[npt.NDArray[Any]], dtype: Any, shifts: Iterable[int]) -> npt.NDArray[Any]:
    """Arrays one after the other, each with its shift added to it.

    >>> joined([np.array([0, 1]), np.array([0])], np.int64, [0, 5])
    array([0, 1, 5])
    """
    parts = list(parts)
    out, at = empty(sum(map(len, parts)), dtype), 0
    for part, shift in zip(parts, shifts, strict=True):
        np.add(part, shift, out=out[at : at + len(part)], casting="unsafe")
        at += len(part)
    return out
