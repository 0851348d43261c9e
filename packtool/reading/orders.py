"""Large orders are files of a cache, which all processes of a machine map; whoever needs one first makes it.

Ranks of one machine, and their workers, read the same rows in the same order. An order depends on numbers alone, which
are the name of its file.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, BinaryIO

import numpy as np

from packtool.places.cached import Cache
from packtool.planning.arrays import Arrays
from packtool.planning.plan import Ints, index_type
from packtool.planning.shuffling.atom import AtomShuffle, reorder
from packtool.support.mapped import ArrayFile, mapped

LARGE = 1 << 20
"""Atoms from which an order is worth a file."""
_KEPT_BYTES = 8 << 30  # of orders; those used longest ago go


def shared_order(shuffle: AtomShuffle, directory: Path | None) -> Ints:
    """Return the stored atom at each place of an order: (atoms), a read-only map of a file if there are many.

    Args:
        directory: of the files; None to make the order in memory. So it is made, too, where no file can be written.
    """
    if directory is None or shuffle.atoms < LARGE:
        return shuffle.order()
    kind: np.dtype[Any] = np.dtype(index_type(shuffle.atoms))
    cache = Cache(directory, _KEPT_BYTES)

    def fill(out: BinaryIO) -> None:
        arrays = _NamelessArrays(cache.directory)
        order = replace(shuffle, stored=None).order(arrays)
        if shuffle.stored is not None:  # every epoch of the dataset needs it, so it has a file, too
            order = reorder(shared_order(shuffle.stored, directory), order, arrays)
        order.tofile(out)

    try:
        while True:
            file = cache.made(_name(shuffle), lambda: shuffle.atoms * kind.itemsize, fill)
            with suppress(FileNotFoundError):  # it was removed in the meantime to make room
                return ArrayFile(file, kind, (shuffle.atoms,)).open()
    except OSError:
        return shuffle.order()


def _name(shuffle: AtomShuffle) -> str:
    """Return the name of the file of an order: all the numbers that it depends on.

    >>> _name(AtomShuffle(9, 0, 42, 1, AtomShuffle(9, 0, 42, 0)))
    '9-0-42-1-from-42-0'
    """
    name = f"{shuffle.atoms}-{shuffle.first}-{shuffle.seed}-{shuffle.epoch}"
    if shuffle.stored is None:
        return name
    return f"{name}-from-{shuffle.stored.seed}-{shuffle.stored.epoch}"


class _NamelessArrays(Arrays):
    """Allocates arrays in files without names, so that nothing is left of them however the process ends."""

    sorted_at_once = 12_000_000  # a quarter of a gigabyte

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def empty(self, count: int, dtype: Any) -> np.ndarray[Any, Any]:
        size = count * np.dtype(dtype).itemsize
        with TemporaryFile(dir=self._directory) as file:
            os.posix_fallocate(file.fileno(), 0, size)
            return mapped(file.fileno(), size, writable=True).view(dtype)
