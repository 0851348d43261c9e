"""Read slices of files around the page cache of Linux: many in one call, straight into memory of this process.

Where memory holds little of what is read at random, the system spends more on each page that it keeps, and on the one
that it gives up for it, than on reading it.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import mmap
import os
import platform
import threading
from collections.abc import Callable

import numpy as np

from packtool.places.place import I64

_BLOCKS = (1 << 9, 1 << 12)
"""Bytes that disks read at least, and in multiples of which they begin."""
_CALLS = {"x86_64": (206, 207, 208, 209), "aarch64": (0, 1, 4, 2)}
"""Numbers of io_setup, io_destroy, io_getevents and io_submit, by machine; the C library has no functions for them."""
_ITEMS, _EVENT_ITEMS = 8, 4
"""64-bit integers of a request, `struct iocb`, and of what says that it is done, `struct io_event`."""
_TAG, _FILE, _ADDRESS, _SIZE, _FIRST = 0, 2, 3, 4, 5
"""Which of them hold the number of a request, its file (in the upper half; the lower one is 0 to read), where in memory
its bytes go, how many there are, and the first one's place in the file."""
_RESULT = 2
"""Which of an event's are the bytes that were read, below 0 for an error; the first is the number of the request."""


class NoWayAroundError(Exception):
    """The system can't read around its page cache, or not these slices.

    It is no OSError, as those may be that the handler of a signal raises.
    """


def bypass_cache(handle: int) -> None:
    """Let an open file be read around the page cache from now on, in whole blocks.

    Raises:
        NoWayAroundError: its file system can't.
    """
    if not _works(fcntl.fcntl, handle, fcntl.F_SETFL, fcntl.fcntl(handle, fcntl.F_GETFL) | os.O_DIRECT):
        raise NoWayAroundError


def block_of(handle: int) -> int:
    """Return the bytes of a block of a file that `bypass_cache` was called for; raise its error if there are none."""
    with mmap.mmap(-1, _BLOCKS[-1]) as memory, memoryview(memory) as space:
        for block in _BLOCKS:
            if _works(os.preadv, handle, [space[:block]], block):
                return block
    raise NoWayAroundError


def _works(call: Callable[..., object], *arguments: object) -> bool:
    try:
        call(*arguments)
    except OSError as error:
        if error.errno == errno.EINVAL:
            return False
        raise
    return True


class DirectReader(threading.local):
    """Reads slices of files that `bypass_cache` was called for; each thread and process has a queue of its own.

    Args:
        slices: the most that are read in one call.
    """

    def __init__(self, slices: int) -> None:
        self._slices = slices
        self._queue: _Queue | None = None

    def __call__(self, handles: I64, first: I64, size: I64, block: int) -> list[bytes]:
        """Read ``first:first + size`` of each file, all at the same time.

        Args:
            handles: of the files; one has as many slices as it occurs here.
            first: byte.
            size: bytes, at least 1.
            block: that of these files.

        Raises:
            NoWayAroundError: the system can't; a file can't be read, or ends before.
        """
        queue, self._queue = self._queue, None  # one that is interrupted is gone, with what it has not read yet
        if queue is None or queue.process != os.getpid():
            queue = _Queue(self._slices)
        parts = queue.read(handles, first, size, block)
        self._queue = queue
        return parts


class _Queue:
    """Requests to the system, as `io_submit(2)` takes them, and the memory that they read into."""

    def __init__(self, slices: int) -> None:
        if platform.system() != "Linux" or platform.machine() not in _CALLS:
            raise NoWayAroundError
        self.process = os.getpid()
        self._call = ctypes.CDLL(None, use_errno=True).syscall
        self._call.restype = ctypes.c_long
        setup, *others = map(ctypes.c_long, _CALLS[platform.machine()])
        self._destroy, self._await, self._submit = others
        self._context = ctypes.c_ulong()
        self._called(setup, ctypes.c_long(slices), ctypes.byref(self._context))
        self._requests = np.zeros((slices, _ITEMS), np.int64)
        self._requests[:, _TAG] = np.arange(slices)
        self._events = np.zeros((slices, _EVENT_ITEMS), np.int64)
        self._each = self._requests.ctypes.data + self._requests.strides[0] * np.arange(slices)
        self._pointers, self._into = self._each.ctypes.data, self._events.ctypes.data
        self._make_room(1)

    def __del__(self) -> None:
        if getattr(self, "_context", None) and self.process == os.getpid():  # a fork may have one of the same number
            self._call(self._destroy, self._context)  # waits for what is still being read into the memory

    def _called(self, *arguments: object) -> int:
        result: int = self._call(*arguments)
        if result >= 0:
            return result
        if ctypes.get_errno() == errno.EINTR:
            return 0
        raise NoWayAroundError

    def _make_room(self, size: int) -> None:
        self._memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self._address = np.frombuffer(self._memory, np.uint8).ctypes.data

    def read(self, handles: I64, first: I64, size: I64, block: int) -> list[bytes]:
        """See `DirectReader`."""
        count, begin = len(handles), first & -block
        place = first - begin
        blocks = (place + size + (block - 1)) & -block
        ends = blocks.cumsum()
        total = int(ends[-1])
        if total > len(self._memory):
            self._make_room(2 * total)
        ends -= blocks
        requests, events = self._requests[:count], self._events[:count]
        np.left_shift(handles, 32, out=requests[:, _FILE])
        np.add(ends, self._address, out=requests[:, _ADDRESS])
        requests[:, _SIZE] = blocks
        requests[:, _FIRST] = begin
        sent = done = 0
        while sent < count:
            some = ctypes.c_void_p(self._pointers + 8 * sent)
            sent += self._called(self._submit, self._context, ctypes.c_long(count - sent), some)
        while done < count:  # a signal may end the call before
            left, into = ctypes.c_long(count - done), ctypes.c_void_p(self._into + 8 * _EVENT_ITEMS * done)
            done += self._called(self._await, self._context, left, left, into, None)
        if events[:, _RESULT].sum() < total:  # as the last block of a file does
            read = np.empty(count, np.int64)
            read[events[:, _TAG]] = events[:, _RESULT]
            if (read < place + size).any():
                raise NoWayAroundError
        place += ends
        bounds = map(slice, place.tolist(), (place + size).tolist())
        return list(map(self._memory.__getitem__, bounds))
