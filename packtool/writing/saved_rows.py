"""Rows for other processes: plan and order on disk, mapped by all that read them; what they read is opened again."""

from __future__ import annotations

import hashlib
import io
import pickle
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from packtool.errors import DataError
from packtool.plan import Ints
from packtool.writing.rows import PlannedRows

SavedRows: TypeAlias = tuple[PlannedRows, Ints | None]
"""Rows, and the lengths of all documents where segments are known."""
_FILE = "rows.pickle"
_LARGE = 1 << 12
"""Bytes from which an array is a file of its own."""


def save_rows(rows: SavedRows, directory: Path) -> str:
    """Write rows and document lengths to an empty directory, their arrays as `.npy` files.

    Returns:
        What `load_rows` must be given to believe them.
    """
    pickled = io.BytesIO()
    _Pickler(pickled, directory).dump(rows)
    (directory / _FILE).write_bytes(pickled.getvalue())
    return hashlib.sha256(pickled.getvalue()).hexdigest()


@lru_cache(maxsize=4)
def load_rows(directory: Path, digest: str) -> SavedRows:
    """Rows that `save_rows` wrote.

    Raises:
        DataError: they are not what it wrote.
    """
    data = (directory / _FILE).read_bytes()
    if hashlib.sha256(data).hexdigest() != digest:
        remedy = "start again with --overwrite"
        raise DataError("damaged-scratch", "changed since it was written", remedy=remedy, where=str(directory / _FILE))
    rows: SavedRows = _Unpickler(io.BytesIO(data), directory).load()
    return rows


class _Pickler(pickle.Pickler):
    def __init__(self, file: io.BytesIO, directory: Path) -> None:
        super().__init__(file, protocol=5)
        self._directory = directory
        self._arrays: dict[int, tuple[str, Any]] = {}  # keeps them alive, so that no other gets their id

    def persistent_id(self, item: Any) -> str | None:
        if not isinstance(item, np.ndarray) or item.nbytes < _LARGE or item.dtype.hasobject:
            return None
        if id(item) not in self._arrays:
            name = f"array-{len(self._arrays):03d}.npy"
            np.save(self._directory / name, item, allow_pickle=False)
            self._arrays[id(item)] = name, item
        return self._arrays[id(item)][0]


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, directory: Path) -> None:
        super().__init__(file)
        self._directory = directory

    def persistent_load(self, name: str) -> Any:
        return np.load(self._directory / name, mmap_mode="r")
