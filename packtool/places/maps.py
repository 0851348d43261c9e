"""Files mapped to memory. Unlike a map of Python's own, one of these keeps no file open: a dataset may have more shards
than a process may have open files. Unlike one of pyarrow's, it loads nothing into a trainer's workers."""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
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
    """Release the memory that maps these arrays' files; reading maps them again."""
    for array in arrays:
        buffer: Any = array
        while isinstance(buffer, np.ndarray):
            buffer = buffer.base
        if isinstance(buffer, memoryview):
            _C.madvise(ctypes.addressof(buffer.obj), len(buffer), mmap.MADV_DONTNEED)  # type: ignore[arg-type]


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
        values: npt.NDArray[Any] = self._all.take(self._begins.take(number) + place)
        return values
