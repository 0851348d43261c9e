"""Ranges of an object's bytes: those near each other by one request, several requests at once."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import sliding_window_view

from packtool.errors import DataError
from packtool.places.client import filesystem, patiently
from packtool.places.transfer import PART_BYTES

GAP_BYTES = 1 << 18
"""What lies between two ranges is read with them up to this size: about what a connection carries while a request
would be on its way."""
REQUESTS = 16
"""That one process has on their way at once."""

I64 = npt.NDArray[np.int64]

_pools: dict[int, ThreadPoolExecutor] = {}
_making = threading.Lock()


def spans(first: I64, count: I64) -> tuple[I64, I64, I64]:
    """The requests for ranges: neighbours joined, none longer than `PART_BYTES` unless one range is.

    Args:
        first, count: of the ranges, ascending.

    Returns:
        First byte and number of bytes of each request, and the request of each range.

    >>> spans(np.array([0, 10, 1 << 20]), np.array([10, 5, 1]))
    (array([      0, 1048576]), array([15,  1]), array([0, 0, 1]))
    """
    end = first + count
    apart = np.empty(len(first), np.bool_)
    apart[:1] = True
    apart[1:] = (first[1:] - np.maximum.accumulate(end)[:-1] > GAP_BYTES) | (
        (end[1:] - first[0]) // PART_BYTES != (end[:-1] - first[0]) // PART_BYTES
    )
    request = np.cumsum(apart) - 1
    heads = np.flatnonzero(apart)
    begin = first[heads]
    stop = np.maximum.reduceat(end, heads) if len(heads) else end
    return begin, stop - begin, request


class RangeReader:
    """Reads ranges of one object, which is opened once.

    Args:
        url: of the object.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self._file: Any = None
        self._process = 0

    def __reduce__(self) -> tuple[Any, ...]:
        return RangeReader, (self.url,)

    def read(self, first: int, count: int) -> bytes:
        """One range.

        Raises:
            DataError: there is no such object any more; the store refuses it, or fails.
        """
        try:
            return patiently(lambda: self._read(first, count), self.url)
        except FileNotFoundError:
            what, remedy = "is not in the store any more", "make it again, or copy it again"
            raise DataError("missing-shard", what, remedy=remedy, where=self.url) from None

    def _read(self, first: int, count: int) -> bytes:
        if self._file is None or self._process != os.getpid():
            store, path = filesystem(self.url)
            self._file, self._process = store.open_input_file(path), os.getpid()
        data: bytes = self._file.read_at(count, first)
        if len(data) != count:
            self._file = None
            raise OSError("fewer bytes than asked for")
        return data

    def take(self, first: I64, width: int) -> npt.NDArray[np.uint8]:
        """Ranges of the same size, (ranges, width), in the order given.

        Args:
            first: byte of each range.
            width: bytes of each range.
        """
        wanted, where = np.unique(first, return_inverse=True)
        begin, size, request = spans(wanted, np.full(len(wanted), width))
        out = np.empty((len(wanted), width), np.uint8)
        bounds = np.searchsorted(request, np.arange(len(begin) + 1))
        for number, part in enumerate(self._read_all(begin, size)):
            low, high = int(bounds[number]), int(bounds[number + 1])
            windows = sliding_window_view(np.frombuffer(part, np.uint8), width)
            out[low:high] = windows[wanted[low:high] - begin[number]]
        found: npt.NDArray[np.uint8] = out[where.reshape(-1)]
        return found

    def range(self, first: int, count: int) -> npt.NDArray[np.uint8]:
        """One range, however long."""
        out = np.empty(count, np.uint8)
        begin = np.arange(0, count, PART_BYTES)
        size = np.minimum(PART_BYTES, count - begin)
        for place, part in zip(begin.tolist(), self._read_all(begin + first, size), strict=True):
            out[place : place + len(part)] = np.frombuffer(part, np.uint8)
        return out

    def _read_all(self, first: I64, count: I64) -> Iterable[bytes]:
        if len(first) == 1:
            return [self.read(int(first[0]), int(count[0]))]
        return _pool().map(self.read, first.tolist(), count.tolist())


def _pool() -> ThreadPoolExecutor:
    """Threads of this process; one that was forked has its own."""
    with _making:
        if os.getpid() not in _pools:
            _pools.clear()
            _pools[os.getpid()] = ThreadPoolExecutor(REQUESTS, thread_name_prefix="packtool-ranges")
        return _pools[os.getpid()]
