"""Read slices of arrays larger than memory from their files, many at a time.

Through a map, a page costs a fault when it is first touched, and has to be unmapped when its memory is needed again,
which takes more CPU time than to read what a slice covers. What is in memory is read faster through maps.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Sequence
from functools import lru_cache, partial
from itertools import repeat
from typing import Any

import numpy as np

from packtool.places.local import LocalPlace, require_array
from packtool.places.npy import HEADER_BYTES, FileEntry
from packtool.places.place import I64

_OPEN = 1 / 4
"""Share of the files that this process may have open that a reader keeps open."""
_TOGETHER = 128
"""Slices that are read at the same time."""
_BLOCK = 512
"""Bytes that the system counts as one, whatever it reads at once."""


class SliceReader:
    """Reads slices of arrays from local files, all at the same time.

    One after the other, each would be waited for, and read with as much of its file as the disk reads ahead: 8 MiB on
    some.

    Args:
        files: the place and entry of each.
        dtype: of their items.
    """

    def __init__(self, files: Sequence[tuple[LocalPlace, FileEntry]], dtype: np.dtype[Any]) -> None:
        self._files = files
        self._itemsize = dtype.itemsize
        most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        self._open = lru_cache(int(most * _OPEN))(partial(_open, files, dtype))
        self._read = self._asked = -1

    def pays(self, items: int) -> bool:
        """Return whether slices of this many items are faster to read than to copy from maps, judging by the last ones.

        Of those, at least a quarter came from disk: the system says what this process has read.
        """
        read = resource.getrusage(resource.RUSAGE_SELF).ru_inblock * _BLOCK
        last, self._read, self._asked = (self._read, self._asked), read, items * self._itemsize
        return read - last[0] >= last[1] // 4

    def __call__(self, number: I64, first: I64, count: I64) -> list[bytes]:
        """Read items ``first:first + count`` of the array of each number.

        Raises:
            DataError: a file is gone, is another array, or ends before its manifest says.
        """
        parts: list[bytes] = []
        for at in range(0, len(number), _TOGETHER):
            parts += self._together(*(each[at : at + _TOGETHER] for each in (number, first, count)))
        return parts

    def _together(self, number: I64, first: I64, count: I64) -> list[bytes]:
        files = list(map(self._open, number.tolist()))  # hold them open until all is read
        handles = [file.handle for file in files]
        begins, sizes = (HEADER_BYTES + first * self._itemsize).tolist(), (count * self._itemsize).tolist()
        if hasattr(os, "posix_fadvise"):
            list(map(os.posix_fadvise, handles, begins, sizes, repeat(os.POSIX_FADV_WILLNEED)))
        parts = list(map(os.pread, handles, sizes, begins))
        if (read := list(map(len, parts))) != sizes:
            short = next(n for n, (part, size) in enumerate(zip(read, sizes, strict=True)) if part != size)
            place, entry = self._files[number[short]]
            raise place.damaged(entry.name, "is shorter than its manifest says")
        return parts


class _File:
    """An open file, closed when nobody holds it any more."""

    def __init__(self, handle: int) -> None:
        self.handle = handle

    def __del__(self) -> None:
        os.close(self.handle)


def _open(files: Sequence[tuple[LocalPlace, FileEntry]], dtype: np.dtype[Any], number: int) -> _File:
    """Open the file of an array, after holding its header against its entry."""
    place, entry = files[number]
    file = _File(place.open(entry.name))
    require_array(file.handle, entry, dtype, place)
    return file
