"""Save functions to files for other processes; the arrays they hold lie beside them, mapped by every caller."""

from __future__ import annotations

import hashlib
import io
import pickle
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np

from packtool.engines import Engine, Worker
from packtool.errors import DataError
from packtool.writing.array_files import ArrayFile

Task = TypeVar("Task")
Result = TypeVar("Result")

_FILE = "function.pickle"
_LARGE = 1 << 12
"""Bytes from which an array is a file of its own."""


@dataclass(frozen=True)
class Saved(Generic[Task, Result]):
    """A function on disk, small enough to go with every task.

    Attributes:
        directory: that holds it.
        digest: of what `save` wrote, so that nothing else is believed.
    """

    directory: Path
    digest: str

    def __call__(self, task: Task, worker: Worker) -> Result:
        """Call the function with a task.

        Raises:
            DataError: it is not what `save` wrote.
        """
        result: Result = self.held()(task, worker)
        return result

    def held(self) -> Any:
        """Load the saved function.

        Raises:
            DataError: it is not what `save` wrote.
        """
        return load(self.directory, self.digest)

    @property
    def file(self) -> Path:
        """What every process that calls it must see."""
        return self.directory / _FILE


def save(held: Any, directory: Path) -> Saved[Any, Any]:
    """Write a function, or something else, to an empty directory; arrays that lie in files stay where they are."""
    pickled = io.BytesIO()
    _Pickler(pickled, directory).dump(held)
    with (directory / _FILE).open("xb") as file:
        file.write(pickled.getvalue())
    return Saved(directory.absolute(), hashlib.sha256(pickled.getvalue()).hexdigest())


@lru_cache(maxsize=4)
def load(directory: Path, digest: str) -> Any:
    """Load what `save` wrote, as long as it has this digest."""
    data = (directory / _FILE).read_bytes()
    if hashlib.sha256(data).hexdigest() != digest:
        remedy = "start again with --overwrite"
        raise DataError("damaged-scratch", "changed since it was written", remedy=remedy, where=str(directory / _FILE))
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
    with tempfile.TemporaryDirectory(prefix="plan.", dir=work) as place:
        (Path(place) / "rows").mkdir()
        saved = save(function, Path(place) / "rows")
        yield saved, saved.file


class _Pickler(pickle.Pickler):
    def __init__(self, file: io.BytesIO, directory: Path) -> None:
        super().__init__(file, protocol=5)
        self._directory = directory.absolute()
        self._arrays: dict[int, tuple[ArrayFile, Any]] = {}  # keeps them alive, so that no other gets their id

    def persistent_id(self, item: Any) -> tuple[Any, ...] | None:
        if not isinstance(item, np.ndarray) or item.nbytes < _LARGE or item.dtype.hasobject:
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
