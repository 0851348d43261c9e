"""Send functions to other processes by files; the arrays that they hold lie in files, which every process maps."""

from __future__ import annotations

import hashlib
import io
import pickle
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Generic

import numpy as np

from packtool.engines.engine import Result, Task, TaskFunction, Worker
from packtool.errors import DataError
from packtool.support.mapped import ArrayFile

_LARGE_IN_FUNCTION = 1 << 12  # bytes from which an array that a function holds is a file of its own
_FUNCTION = "function.pickle"
_REMEDY = "start again with --overwrite=True"


@dataclass(frozen=True)
class Saved(Generic[Task, Result]):
    """A function on disk, small enough to go with every task."""

    directory: Path
    digest: str  # digest of the bytes that `save` wrote, so that a file that changed is not loaded

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
    """Load the function that `save` wrote.

    Raises:
        DataError: the file has changed.
    """
    data = saved.file.read_bytes()
    if hashlib.sha256(data).hexdigest() != saved.digest:
        raise DataError("damaged-scratch", "changed since it was written", remedy=_REMEDY, where=str(saved.file))
    return _Unpickler(io.BytesIO(data)).load()


@contextmanager
def sent(function: TaskFunction[Task, Result], work: Path | None) -> Iterator[TaskFunction[Task, Result]]:
    """Write a function to a file as long as the block runs, and yield what goes with each task in its place.

    Args:
        work: a directory that all workers see; None to send the function itself.
    """
    if work is None:
        yield function
        return
    with tempfile.TemporaryDirectory(prefix="function.", dir=work) as directory:
        yield save(function, Path(directory))


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
