"""Allocate arrays in files, which any process can map: `Arrays` for planning beyond memory, and for tasks elsewhere."""

from __future__ import annotations

import itertools
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from packtool.planning.arrays import Arrays
from packtool.support.mapped import ArrayFile
from packtool.support.naming import naming

LARGE = 1 << 20
"""Bytes from which an array is worth a file."""


class FileArrays(Arrays):
    """Allocates large arrays in files of a directory that nobody else writes to."""

    sorted_at_once = 1 << 21  # few: it is for commands that are given little memory

    def __init__(self, directory: Path) -> None:
        self.directory = directory.absolute()
        self._numbers = itertools.count()

    def empty(self, count: int, dtype: Any) -> np.ndarray[Any, Any]:
        """Allocate an array of this many items.

        Raises:
            OSError: the disk is full. Filling the array would kill the process instead, without a message.
        """
        size = count * np.dtype(dtype).itemsize
        if size < LARGE:
            return super().empty(count, dtype)
        file = ArrayFile(self.directory / f"planned-{next(self._numbers):05d}", np.dtype(dtype), (count,))
        self.directory.mkdir(parents=True, exist_ok=True)
        with file.path.open("xb") as out, naming(file.path):
            os.posix_fallocate(out.fileno(), 0, size)
        return file.open(writable=True)


@contextmanager
def temporary_arrays(work: Path) -> Iterator[FileArrays]:
    """Allocate arrays in a directory inside `work` that is removed when the block ends."""
    with tempfile.TemporaryDirectory(prefix="plan.", dir=work) as name:
        yield FileArrays(Path(name))
