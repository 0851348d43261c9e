"""Read slices of arrays larger than memory from their files, many at a time.

Through a map, a page costs a fault when it is first touched, and has to be unmapped when its memory is needed again,
which takes more CPU time than to read what a slice covers. What is in memory is read faster through maps.
"""

from __future__ import annotations

import math
import os
import resource
from collections.abc import Sequence
from itertools import repeat
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
        self._dtype = dtype
        most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        self._most = max(1, int(most * _OPEN))
        self._at_once = min(_TOGETHER, self._most)
        self._opened = {direct: _OpenFiles(files, dtype, direct=direct) for direct in (False, True)}
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
        if 0 < len(number) <= self._at_once:
            return self._together(number, first, count)
        parts: list[bytes] = []
        for at in range(0, len(number), self._at_once):
            parts += self._together(*(each[at : at + self._at_once] for each in (number, first, count)))
        return parts

    def _together(self, number: I64, first: I64, count: I64) -> list[bytes]:
        begin, size = HEADER_BYTES + first * self._itemsize, count * self._itemsize
        if self.direct is not None and self.trial.around and self._pages >= _MANY:
            try:
                opened = self._open(len(number), direct=True)
                handles = opened.of(number)
                self._block = self._block or block_of(int(handles[0]))
                return self.direct(handles, begin, size, self._block)
            except NoWayAroundError:  # through the cache it says what is wrong, if anything is
                self.direct = None
        opened = self._open(len(number), direct=False)
        handles, begins, sizes = opened.of(number).tolist(), begin.tolist(), size.tolist()
        if hasattr(os, "posix_fadvise"):
            list(map(os.posix_fadvise, handles, begins, sizes, repeat(os.POSIX_FADV_WILLNEED)))
        parts = list(map(os.pread, handles, sizes, begins))
        if (read := list(map(len, parts))) != sizes:
            short = next(n for n, (part, size) in enumerate(zip(read, sizes, strict=True)) if part != size)
            place, entry = self._files[number[short]]
            raise place.damaged(entry.name, "is shorter than its manifest says")
        return parts

    def _open(self, more: int, *, direct: bool) -> _OpenFiles:
        """Return the open files, to be held until all is read; none where some more would be too many."""
        opened = self._opened[direct]
        if opened and len(opened) + more > self._most:
            opened = self._opened[direct] = _OpenFiles(self._files, self._dtype, direct=direct)
        return opened


def _bytes_read() -> int:
    """Return what this process has had the system read from disk."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_inblock * _BLOCK


class _OpenFiles:
    """Files that are open, each from when it is first needed; closed when nobody holds them any more.

    Args:
        direct: they are read around the page cache.
    """

    def __init__(self, files: Sequence[tuple[LocalPlace, FileEntry]], dtype: np.dtype[Any], *, direct: bool) -> None:
        self._direct = direct
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
        """Return the file descriptor of each.

        Raises:
            DataError: it is gone, or another array.
            NoWayAroundError: it can't be read around the page cache.
        """
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
            if self._direct:
                bypass_cache(handle)
        except BaseException:
            os.close(handle)
            raise
        if (first := self._open.setdefault(number, handle)) != handle:  # another thread's
            os.close(handle)
        return first
