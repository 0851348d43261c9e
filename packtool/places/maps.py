"""Files mapped to memory. Unlike a map of Python's own, one of these keeps no file open: a dataset may have more shards
than a process may have open files. Unlike one of pyarrow's, it loads nothing into a trainer's workers."""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import resource
import weakref
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

_C = ctypes.CDLL(None, use_errno=True)
_C.mmap.restype = ctypes.c_void_p
_C.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
_C.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_C.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_FETCHED = 1 << 13  # bytes read at once: what lies beside a slice may be needed next, and each read has its own cost
_FAILED = ctypes.c_void_p(-1).value


def mapped(handle: int, size: int, *, writable: bool = False) -> npt.NDArray[np.uint8]:
    """Map the first bytes of an open file, which may be closed right away.

    Args:
        size: how many, at least one.
        writable: what is written to the array goes to the file.

    Raises:
        OSError: the file is shorter, so that reading what is missing would kill the process; or the system refuses.
    """
    if os.fstat(handle).st_size < size:
        raise OSError(errno.EINVAL, f"the file is shorter than {size} bytes")
    access = mmap.PROT_READ | (mmap.PROT_WRITE if writable else 0)
    address = _C.mmap(None, size, access, mmap.MAP_SHARED, handle, 0)
    if address == _FAILED:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    data = (ctypes.c_ubyte * size).from_address(address)
    weakref.finalize(data, _C.munmap, address, size).atexit = False  # arrays may be read until the very end
    view = memoryview(data)
    return np.frombuffer(view if writable else view.toreadonly(), np.uint8)


def release(arrays: Iterable[np.ndarray[Any, Any]]) -> None:
    """Give back the memory that maps these arrays' files; what is read again is mapped again."""
    for array in arrays:
        buffer: Any = array
        while isinstance(buffer, np.ndarray):
            buffer = buffer.base
        if isinstance(buffer, memoryview):
            _C.madvise(ctypes.addressof(buffer.obj), len(buffer), mmap.MADV_DONTNEED)  # type: ignore[arg-type]


class Fetcher:
    """Has the system read slices of mapped files together, and little around them, while they are seldom in memory.

    Touched one after the other, each would be waited for, and read with as much of its file as the disk reads ahead:
    8 MiB on some. Where the last slices were in memory, as they are if a part of the file is read again and again,
    asking would only take time, and so it would to ask whether they are: what the process has read tells as well.

    Args:
        arrays: mapped, or so when they are needed.
    """

    def __init__(self, arrays: Sequence[npt.NDArray[Any]]) -> None:
        self._arrays = arrays
        self._read = self._slices = -1

    def __call__(
        self, number: npt.NDArray[np.int64], first: npt.NDArray[np.int64], size: npt.NDArray[np.int64]
    ) -> None:
        """Begin to read bytes ``first:first + size`` of the array of each number, if the last ones had to be read."""
        read, before = resource.getrusage(resource.RUSAGE_SELF).ru_inblock, self._read
        if (read - before) * 512 >= self._slices * _FETCHED // 4:
            which, at = np.unique(number, return_inverse=True)
            address = [self._arrays[each].__array_interface__["data"][0] for each in which.tolist()]
            begin, end = first // _FETCHED * _FETCHED, -(-(first + size) // _FETCHED) * _FETCHED
            place = np.array(address, np.int64)[at] + begin
            skew = place % mmap.PAGESIZE  # of an array that does not begin with a page
            place, count = place - skew, end - begin + skew
            for each in zip(place.tolist(), count.tolist(), strict=True):
                _C.madvise(*each, mmap.MADV_WILLNEED)
        self._read, self._slices = read, len(number)


class Scattered:
    """Items of several arrays, read in any order by one call of NumPy.

    NumPy reads from a view that begins with the array lowest in memory, and ends with the highest. What lies between
    them is not ours: places are those of items that there are, which is not checked.

    Args:
        arrays: one or more, 1-D, of one dtype.

    >>> read = Scattered([np.array([1, 2, 3]), np.array([4, 5])])
    >>> read(np.array([1, 0]), np.array([0, 2]))
    array([4, 3])
    """

    def __init__(self, arrays: Sequence[npt.NDArray[Any]]) -> None:
        address = np.array([array.__array_interface__["data"][0] for array in arrays], np.int64)
        lowest = arrays[int(address.argmin())]
        self._arrays = arrays  # whose memory it is
        self._begins, odd = np.divmod(address - address.min(), lowest.itemsize)
        if odd.any() or not all(array.flags.c_contiguous and array.flags.aligned for array in arrays):
            raise ValueError("arrays have to be aligned and contiguous")
        end = int((self._begins + [len(array) for array in arrays]).max())
        self._all = np.lib.stride_tricks.as_strided(lowest, (end,), (lowest.itemsize,), writeable=False)

    def __call__(self, number: npt.NDArray[np.int64], place: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        """Read an item of the array of each number."""
        found: npt.NDArray[Any] = self._all.take(self._begins.take(number) + place)
        return found
