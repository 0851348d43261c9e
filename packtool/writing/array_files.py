"""Allocate arrays in files, which any process can map: `Arrays` for planning beyond memory, and for tasks elsewhere."""

from __future__ import annotations

import itertools
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from packtool.errors import DataError
from packtool.places.npy import mapped
from packtool.planning.arrays import Arrays

LARGE = 1 << 20
"""Bytes from which an array is worth a file."""


class MappedBytes(np.ndarray[tuple[int], np.dtype[np.uint8]]):
    """The bytes of a file, mapped. Arrays that are views of them find the file through their `base`.

    Attributes:
        path: of the file.
    """

    path: Path


class ArrayFile(NamedTuple):
    """The location of an array in a file.

    Attributes:
        path: a file of array items and nothing else.
        dtype, shape: of the array.
        offset: in bytes, where it begins in the file.
    """

    path: Path
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    offset: int = 0

    def open(self, *, writable: bool = False) -> np.ndarray[Any, Any]:
        """Map the array.

        Raises:
            DataError: the file is shorter than the array; reading what is missing would kill the process (SIGBUS).
        """
        size = self.offset + self.dtype.itemsize * int(np.prod(self.shape))
        with self.path.open("r+b" if writable else "rb") as file:
            if (there := os.fstat(file.fileno()).st_size) < size:
                what = f"has {there} bytes where {size} were written"
                raise DataError("damaged-scratch", what, remedy="start again with --overwrite", where=str(self.path))
            data = MappedBytes((size,), np.uint8, buffer=mapped(file.fileno(), size, writable=writable).base)
        data.path = self.path
        # Views of the plain type: arithmetic on a subclass of ndarray is slower, and its results are of the subclass.
        return data.view(np.ndarray)[self.offset :].view(self.dtype).reshape(self.shape)

    @classmethod
    def of(cls, array: np.ndarray[Any, Any]) -> ArrayFile | None:
        """Locate an array in a file; None if it is in none, or the file is gone."""
        whole: Any = array
        while isinstance(whole, np.ndarray) and not isinstance(whole, MappedBytes):
            whole = whole.base
        if not isinstance(whole, MappedBytes) or not array.flags.c_contiguous or not whole.path.exists():
            return None
        return cls(whole.path, array.dtype, array.shape, array.ctypes.data - whole.ctypes.data)


class FileArrays(Arrays):
    """Allocates large arrays in files of a directory that nobody else writes to."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory.absolute()
        self._numbers = itertools.count()

    def empty(self, count: int, dtype: Any) -> np.ndarray[Any, Any]:
        """Allocate an array of this many items.

        Raises:
            OSError: the disk is full: found here, where it can be said, rather than when the array is filled.
        """
        size = count * np.dtype(dtype).itemsize
        if size < LARGE:
            return super().empty(count, dtype)
        file = ArrayFile(self.directory / f"planned-{next(self._numbers):05d}", np.dtype(dtype), (count,))
        self.directory.mkdir(parents=True, exist_ok=True)
        with file.path.open("xb") as out:
            os.posix_fallocate(out.fileno(), 0, size)
        return file.open(writable=True)


@contextmanager
def temporary_arrays(work: Path) -> Iterator[FileArrays]:
    """Allocate arrays in a directory inside `work` that is removed when the block ends."""
    with tempfile.TemporaryDirectory(prefix="plan.", dir=work) as name:
        yield FileArrays(Path(name))
