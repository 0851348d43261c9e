"""Arrays that lie on disk: what may exceed memory is mapped from files, by this process and by others."""

from __future__ import annotations

import os
import weakref
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from packtool.storage.maps import mapped


class DiskArray(NamedTuple):
    """Where an array lies.

    Attributes:
        path: a file with its bytes and nothing else.
        dtype, shape: of the array.
    """

    path: Path
    dtype: np.dtype[Any]
    shape: tuple[int, ...]

    def open(self, *, writable: bool = False) -> np.ndarray[Any, Any]:
        """The array, mapped."""
        size = self.dtype.itemsize * int(np.prod(self.shape))
        with self.path.open("r+b" if writable else "rb") as file:
            array = mapped(file.fileno(), size, writable=writable)
        _files[address(array)] = self.path
        weakref.finalize(array.base, _files.pop, address(array), None).atexit = False
        return array.view(self.dtype).reshape(self.shape)


_files: dict[int, Path] = {}
"""What lies where in memory: the files of the arrays that are open."""


def address(array: np.ndarray[Any, Any]) -> int:
    """Where an array begins in memory."""
    found: int = array.__array_interface__["data"][0]
    return found


def file_of(array: np.ndarray[Any, Any]) -> Path | None:
    """The file that holds an array from its first byte; None where it lies elsewhere."""
    return _files.get(address(array)) if array.flags.c_contiguous else None


class ArraysOnDisk:
    """Makes arrays in files of a directory.

    Args:
        directory: that nobody else writes to.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory.absolute()
        self._made = 0

    def empty(self, count: int, dtype: Any) -> np.ndarray[Any, Any]:
        """Room for so many items, at least one.

        Raises:
            OSError: the disk is full: found here, where it can be said, rather than when the room is used.
        """
        place = DiskArray(self._directory / f"planned-{self._made:05d}", np.dtype(dtype), (count,))
        self._made += 1
        self._directory.mkdir(parents=True, exist_ok=True)
        with place.path.open("xb") as file:
            os.posix_fallocate(file.fileno(), 0, count * place.dtype.itemsize)
        return place.open(writable=True)
