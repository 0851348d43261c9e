"""Share arrays and functions with other processes: they lie in files, and every process maps the arrays."""

from __future__ import annotations

import hashlib
import io
import itertools
import os
import pickle
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from packtool.arrays import Arrays
from packtool.engines import Engine, Worker
from packtool.errors import DataError
from packtool.places.npy import mapped

Task = TypeVar("Task")
Result = TypeVar("Result")

LARGE = 1 << 20
"""Bytes from which an array is worth a file."""
_LARGE_IN_FUNCTION = 1 << 12
"""Bytes from which an array that a function holds is a file of its own."""
_FUNCTION = "function.pickle"
_REMEDY = "start again with --overwrite"


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
                raise DataError("damaged-scratch", what, remedy=_REMEDY, where=str(self.path))
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


@dataclass(frozen=True)
class Saved(Generic[Task, Result]):
    """A function on disk, small enough to go with every task.

    Attributes:
        digest: of what `save` wrote, so that a file that changed is not loaded.
    """

    directory: Path
    digest: str

    def __call__(self, task: Task, worker: Worker) -> Result:
        result: Result = load(self)(task, worker)
        return result

    @property
    def file(self) -> Path:
        """The file that every process which calls the function must see."""
        return self.directory / _FUNCTION


def save(function: Any, directory: Path) -> Saved[Any, Any]:
    """Write a function, or another object, to an empty directory; arrays that lie in files stay where they are."""
    pickled = io.BytesIO()
    _Pickler(pickled, directory).dump(function)
    saved: Saved[Any, Any] = Saved(directory.absolute(), hashlib.sha256(pickled.getvalue()).hexdigest())
    with saved.file.open("xb") as file:
        file.write(pickled.getvalue())
    return saved


@lru_cache(maxsize=4)
def load(saved: Saved[Any, Any]) -> Any:
    """Load what `save` wrote.

    Raises:
        DataError: the file has changed.
    """
    data = saved.file.read_bytes()
    if hashlib.sha256(data).hexdigest() != saved.digest:
        raise DataError("damaged-scratch", "changed since it was written", remedy=_REMEDY, where=str(saved.file))
    return _Unpickler(io.BytesIO(data)).load()


@contextmanager
def sent(
    function: Callable[[Task, Worker], Result], engine: Engine, work: Path
) -> Iterator[tuple[Callable[[Task, Worker], Result], Path | None]]:
    """Pass a function to the tasks of an engine: itself, or a file on disk where memory is not shared.

    Args:
        work: a directory that all workers see.

    Yields:
        The function, and a file that every worker must see; None where there is none.
    """
    if engine.shares_memory:
        yield function, None
        return
    with tempfile.TemporaryDirectory(prefix="plan.", dir=work) as directory:
        saved = save(function, Path(directory))
        yield saved, saved.file


class _Pickler(pickle.Pickler):
    def __init__(self, file: io.BytesIO, directory: Path) -> None:
        super().__init__(file, protocol=5)
        self._directory = directory.absolute()
        self._arrays: dict[int, tuple[ArrayFile, Any]] = {}  # keeps them alive, so that no other gets their id

    def persistent_id(self, item: Any) -> tuple[Any, ...] | None:
        if not isinstance(item, np.ndarray) or item.nbytes < _LARGE_IN_FUNCTION or item.dtype.hasobject:
            return None
        if id(item) not in self._arrays:
            place = ArrayFile.of(item)
            if place is None:
                place = ArrayFile(self._directory / f"array-{len(self._arrays):03d}", item.dtype, item.shape)
                with place.path.open("xb") as file:  # never over one that another process maps
                    np.ascontiguousarray(item).tofile(file)
            self._arrays[id(item)] = place, item
        return tuple(self._arrays[id(item)][0])


class _Unpickler(pickle.Unpickler):
    def persistent_load(self, place: tuple[Any, ...]) -> Any:
        return ArrayFile(*place).open()
