"""Arrays that lie on disk: what may exceed memory is mapped from files, by this process and by others."""

from __future__ import annotations

import os
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from packtool import room
from packtool.storage.maps import mapped


class DiskArray(NamedTuple):
    """Where an array lies.

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
        """The array, mapped."""
        end = self.offset + self.dtype.itemsize * int(np.prod(self.shape))
        with self.path.open("r+b" if writable else "rb") as file:
            array = mapped(file.fileno(), end, writable=writable)
        _files[_address(array)] = self.path
        weakref.finalize(array.base, _files.pop, _address(array), None).atexit = False
        return array[self.offset :].view(self.dtype).reshape(self.shape)


_files: dict[int, Path] = {}
"""What lies where in memory: the files of the arrays that are open, by the address of their first byte."""


def place_of(array: np.ndarray[Any, Any]) -> DiskArray | None:
    """Where an array lies on disk; None where it does not, or its file is gone."""
    whole = array
    while isinstance(whole.base, np.ndarray):
        whole = whole.base
    path = _files.get(_address(whole))
    if path is None or not array.flags.c_contiguous or not path.exists():
        return None
    return DiskArray(path, array.dtype, array.shape, _address(array) - _address(whole))


def _address(array: np.ndarray[Any, Any]) -> int:
    found: int = array.__array_interface__["data"][0]
    return found


@contextmanager
def arrays_on_disk(work: Path) -> Iterator[Path]:
    """Large arrays that this thread makes meanwhile lie on disk, in a directory that goes when the block ends.

    Args:
        work: where to make it.
    """
    with tempfile.TemporaryDirectory(prefix="plan.", dir=work) as name:
        scratch = Path(name).absolute()
        with room.made_by(ArraysOnDisk(scratch).empty):
            yield scratch


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
