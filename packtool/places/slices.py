"""Read slices of arrays larger than memory from their files, many at a time.

Through a map, a page costs a fault when it is first touched, and has to be unmapped when its memory is needed again,
which takes more CPU time than to read what a slice covers. What is in memory is read faster through maps.
"""

from __future__ import annotations

import math
import os
import resource
from collections.abc import Sequence
from functools import lru_cache, partial
from itertools import repeat
from operator import attrgetter
from typing import Any

import numpy as np

from packtool.places.direct import DirectReader, NoWayAroundError, block_of, bypass_cache
from packtool.places.local import LocalPlace, require_array
from packtool.places.npy import HEADER_BYTES, FileEntry
from packtool.places.place import I64

_OPEN = 1 / 8
"""Share of the files this process may have open that a reader keeps open each way; one of loss may be beside it."""
_TOGETHER = 128
"""Slices that are read at the same time."""
_BLOCK = 512
"""Bytes that the system counts as one, whatever it reads at once."""
_PAGE = 1 << 12
_MANY = 24 * _PAGE
"""Bytes of pages from which on it takes less to read around their cache; fewer are not worth the arrangements."""
_WORTHLESS = 2 / 3
"""Share of the pages asked for that come from disk, above which the page cache is not worth what it takes."""
_AROUND = 15
"""How long slices are read around the page cache before it is tried again, in memories' worth of pages."""

_HANDLE = attrgetter("handle")


class CacheTrial:
    """Finds out whether the page cache has what is read, and decides whether to read around it.

    As many pages as memory has are read through the cache, to fill it, then as many again. Where most of these came
    from disk all the same, reading goes around the cache, until it is tried again.

    Args:
        memory: bytes.

    Attributes:
        around: read around the cache.

    >>> trial = CacheTrial(memory=1000)
    >>> trial.note(1000, read=1000), trial.note(900, read=700), trial.around
    (None, None, False)
    >>> trial.note(100, read=100), trial.around
    (None, True)
    """

    def __init__(self, memory: int) -> None:
        self._memory = memory
        self._left = 2 * memory
        self._asked = self._read = 0
        self.around = False

    def note(self, asked: int, read: int) -> None:
        """Note the bytes of the pages that were asked for, and how many were read from disk."""
        if self._left <= self._memory:
            self._asked += asked
            self._read += read
        self._left -= asked
        if self._left <= 0:
            tried = not self.around
            self.around = tried and self._read > self._asked * _WORTHLESS
            self._left = self._memory * (_AROUND if self.around else 1 if tried else 2)
            self._asked = self._read = 0


class SliceReader:
    """Reads slices of arrays from local files, all at the same time.

    One after the other, each would be waited for, and read with as much of its file as the disk reads ahead: 8 MiB on
    some.

    Args:
        files: the place and entry of each.
        dtype: of their items.
        memory: bytes of it, which are less than the files'.

    Attributes:
        trial: of the page cache.
        direct: reads around it; None where that can't be.
    """

    def __init__(self, files: Sequence[tuple[LocalPlace, FileEntry]], dtype: np.dtype[Any], memory: int) -> None:
        self._files = files
        self._itemsize = dtype.itemsize
        most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        self._open = lru_cache(int(most * _OPEN))(partial(_open, files, dtype))
        self._open_direct = lru_cache(int(most * _OPEN))(partial(_open_direct, files, dtype))
        self.direct = DirectReader(_TOGETHER) if hasattr(os, "O_DIRECT") else None
        self._block = 0  # of their disk; not known yet
        self.trial = CacheTrial(memory)
        self._read, self._asked, self._pages = _bytes_read(), 0, 0

    def pays(self, slices: int, items: int, step: int = 1) -> bool:
        """Return whether slices are faster to read than to copy from maps, judging by the last ones.

        Of those, at least a quarter came from disk: the system says what this process has read.

        Args:
            slices: how many there are.
            items: of all of them.
            step: they begin at multiples of so many items.
        """
        last, asked = self._read, self._asked
        self._read, self._asked = _bytes_read(), items * self._itemsize
        if asked:
            self.trial.note(self._pages, self._read - last)
        self._pages = self._asked + slices * (_PAGE - math.gcd(step * self._itemsize, _PAGE))  # on average
        return self._read - last >= asked // 4

    def __call__(self, number: I64, first: I64, count: I64) -> list[bytes]:
        """Read items ``first:first + count`` of the array of each number.

        Raises:
            DataError: a file is gone, is another array, or ends before its manifest says.
        """
        if len(number) <= _TOGETHER:
            return self._together(number, first, count)
        parts: list[bytes] = []
        for at in range(0, len(number), _TOGETHER):
            parts += self._together(*(each[at : at + _TOGETHER] for each in (number, first, count)))
        return parts

    def _together(self, number: I64, first: I64, count: I64) -> list[bytes]:
        begin, size = HEADER_BYTES + first * self._itemsize, count * self._itemsize
        if self.direct is not None and self.trial.around and self._pages >= _MANY:
            try:
                files = list(map(self._open_direct, number.tolist()))
                self._block = self._block or block_of(files[0].handle)
                return self.direct(np.fromiter(map(_HANDLE, files), np.int64, len(files)), begin, size, self._block)
            except (
                NoWayAroundError
            ):  # through the cache it says what is wrong, if it is more than that this system can't
                self.direct = None
        files = list(map(self._open, number.tolist()))  # hold them open until all is read
        opened, begins, sizes = list(map(_HANDLE, files)), begin.tolist(), size.tolist()
        if hasattr(os, "posix_fadvise"):
            list(map(os.posix_fadvise, opened, begins, sizes, repeat(os.POSIX_FADV_WILLNEED)))
        parts = list(map(os.pread, opened, sizes, begins))
        if (read := list(map(len, parts))) != sizes:
            short = next(n for n, (part, size) in enumerate(zip(read, sizes, strict=True)) if part != size)
            place, entry = self._files[number[short]]
            raise place.damaged(entry.name, "is shorter than its manifest says")
        return parts


def _bytes_read() -> int:
    """Return what this process has had the system read from disk."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_inblock * _BLOCK


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


def _open_direct(files: Sequence[tuple[LocalPlace, FileEntry]], dtype: np.dtype[Any], number: int) -> _File:
    """Do the same to read around the page cache; raise a NoWayAroundError where that can't be."""
    file = _open(files, dtype, number)
    bypass_cache(file.handle)
    return file
