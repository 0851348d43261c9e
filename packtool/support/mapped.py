"""Map files to memory, and find arrays in them.

Unlike Python's `mmap`, these maps keep no file open: a dataset may have more shards than a process may have
open files. Unlike pyarrow's, they load nothing into a trainer's workers.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import weakref
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from packtool.errors import DataError
from packtool.support.naming import naming

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
        DataError: the process has as many maps as the system allows.
    """
    if os.fstat(handle).st_size < size:
        raise OSError(errno.EINVAL, f"the file is shorter than {size} bytes")
    access = mmap.PROT_READ | (mmap.PROT_WRITE if writable else 0)
    address = _C.mmap(None, size, access, mmap.MAP_SHARED, handle, 0)
    if address == _FAILED:
        number = ctypes.get_errno()
        if number == errno.ENOMEM:
            raise _too_many()
        raise OSError(number, os.strerror(number))
    data = (ctypes.c_ubyte * size).from_address(address)
    weakref.finalize(data, _C.munmap, address, size).atexit = False  # arrays may be read until the very end
    view = memoryview(data)
    return np.frombuffer(view if writable else view.toreadonly(), np.uint8)


def _too_many() -> DataError:
    """Return the error for a file that can't be mapped beside those that are, with their number where it is known."""
    what = "the system maps no more files for this process"
    with suppress(OSError):  # macOS has no /proc
        count = Path("/proc/self/maps").read_bytes().count(b"\n")
        most = int(Path("/proc/sys/vm/max_map_count").read_text())
        what += f": it has {count:,} maps, and vm.max_map_count allows {most:,}"
    return DataError("too-many-maps", what, remedy="raise that limit, or read datasets of fewer, larger shards")


def release(arrays: Iterable[np.ndarray[Any, Any]]) -> None:
    """Release the memory that maps these arrays' files; reading maps them again."""
    for array in arrays:
        buffer: Any = array
        while isinstance(buffer, np.ndarray):
            buffer = buffer.base
        if isinstance(buffer, memoryview):
            _C.madvise(ctypes.addressof(buffer.obj), len(buffer), mmap.MADV_DONTNEED)  # type: ignore[arg-type]


class MappedBytes(np.ndarray[tuple[int], np.dtype[np.uint8]]):
    """The bytes of a file, mapped. Arrays that are views of them find the file through their `base`."""

    path: Path  # path of the file


class ArrayFile(NamedTuple):
    """The location of an array in a file."""

    path: Path  # a file of array items and nothing else
    dtype: np.dtype[Any]  # type of the items
    shape: tuple[int, ...]  # shape of the array
    offset: int = 0  # byte of the file where the array begins

    def open(self, *, writable: bool = False) -> np.ndarray[Any, Any]:
        """Map the array.

        Raises:
            DataError: the file is shorter than the array; reading what is missing would kill the process (SIGBUS).
        """
        size = self.offset + self.dtype.itemsize * int(np.prod(self.shape))
        with self.path.open("r+b" if writable else "rb") as file:
            there = os.fstat(file.fileno()).st_size
            if there < size:
                what = f"has {there} bytes where {size} were written"
                remedy = "start again with --overwrite=True"
                raise DataError("damaged-scratch", what, remedy=remedy, where=str(self.path))
            with naming(self.path):
                whole = mapped(file.fileno(), size, writable=writable)
            data = MappedBytes((size,), np.uint8, buffer=whole.base)
        data.path = self.path
        # Views of the plain type: arithmetic on a subclass of ndarray is slower, and its results are of the subclass.
        return data.view(np.ndarray)[self.offset :].view(self.dtype).reshape(self.shape)

    @classmethod
    def of(cls, array: np.ndarray[Any, Any]) -> ArrayFile | None:
        """Return the place of an array in a file; None if it is not in a file, or the file is gone."""
        whole: Any = array
        while isinstance(whole, np.ndarray) and not isinstance(whole, MappedBytes):
            whole = whole.base
        if not isinstance(whole, MappedBytes) or not array.flags.c_contiguous or not whole.path.exists():
            return None
        return cls(whole.path, array.dtype, array.shape, array.ctypes.data - whole.ctypes.data)
