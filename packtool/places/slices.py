"""Read slices of arrays larger than memory from their files, many at a time.

Through a map, a page costs a fault when it is first touched, and has to be unmapped when its memory is needed again,
which takes more CPU time than to read what a slice covers. What is in memory is read faster through maps.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Sequence
from itertools import repeat
from typing import Any

import numpy as np

from packtool.places.local import LocalPlace, require_array
from packtool.places.npy import HEADER_BYTES, FileEntry
from packtool.places.place import I64

_OPEN = 1 / 8
"""The part of the process's limit of open files that a reader uses; there may be a second reader, of loss."""
_TOGETHER = 128  # slices that are read at the same time


class SliceReader:
    """Reads slices of arrays from local files, all at the same time.

    If slices were read one after the other, a reader would wait for every one, and the system would read ahead up to
    8 MiB of its file. So the system is told of all slices first.

    Args:
        files: places and entries of the files.
        dtype: of the items.
    """

    def __init__(self, files: Sequence[tuple[LocalPlace, FileEntry]], dtype: np.dtype[Any]) -> None:
        self._files = files
        self._dtype = dtype
        most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        self._most = max(1, int(most * _OPEN))
        self._at_once = min(_TOGETHER, self._most)
        self._opened = _OpenFiles(files, dtype)

    def __call__(self, number: I64, first: I64, count: I64) -> list[bytes]:
        """Read items ``first:first + count`` of the arrays of these numbers.

        Raises:
            DataError: a file is gone, is another array, or is shorter than its entry in the manifest.
        """
        parts: list[bytes] = []
        for at in range(0, len(number), self._at_once):
            parts += self._together(*(each[at : at + self._at_once] for each in (number, first, count)))
        return parts

    def _together(self, number: I64, first: I64, count: I64) -> list[bytes]:
        begins = (HEADER_BYTES + first * self._dtype.itemsize).tolist()
        sizes = (count * self._dtype.itemsize).tolist()
        if len(self._opened) + len(number) > self._most:
            self._opened = _OpenFiles(self._files, self._dtype)
        opened = self._opened  # kept until all is read, even if another thread replaces it
        handles = opened.of(number).tolist()
        if hasattr(os, "posix_fadvise"):
            list(map(os.posix_fadvise, handles, begins, sizes, repeat(os.POSIX_FADV_WILLNEED)))
        parts = list(map(os.pread, handles, sizes, begins))
        read = list(map(len, parts))
        if read != sizes:
            short = next(n for n, (part, size) in enumerate(zip(read, sizes, strict=True)) if part != size)
            place, entry = self._files[number[short]]
            raise place.damaged(entry.name, "is shorter than its manifest says")
        return parts


class _OpenFiles:
    """Open files, each opened when it is first needed; closed with the last reference to this."""

    def __init__(self, files: Sequence[tuple[LocalPlace, FileEntry]], dtype: np.dtype[Any]) -> None:
        self._files = files
        self._dtype = dtype
        self._open: dict[int, int] = {}
        self._handles = np.full(len(files), -1)  # the same as an array

    def __len__(self) -> int:
        return len(self._open)

    def __del__(self) -> None:
        for handle in self._open.values():
            os.close(handle)

    def of(self, number: I64) -> I64:
        """Return the file descriptors of these arrays; raise a DataError if a file is gone, or is another array."""
        handles = self._handles.take(number)
        if not np.count_nonzero(handles < 0):
            return handles
        for each in dict.fromkeys(number.tolist()):
            if self._handles[each] < 0:
                self._handles[each] = self._opened(each)
        return self._handles.take(number)

    def _opened(self, number: int) -> int:
        place, entry = self._files[number]
        handle = place.open(entry.name)
        try:
            require_array(handle, entry, self._dtype, place)
        except BaseException:
            os.close(handle)
            raise
        first = self._open.setdefault(number, handle)
        if first != handle:  # another thread's
            os.close(handle)
        return first
