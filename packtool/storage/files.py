"""Write `.npy` files that are either whole or not there, hashed as they are written: temporary name, fsync, rename."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import xxhash

from packtool.places.local import PARTIAL, LocalPlace, create_file
from packtool.places.npy import HEADER_BYTES, ArrayName, Count, Digest, FileEntry, npy_header

__all__ = ["HEADER_BYTES", "ArrayName", "Count", "Digest", "FileEntry", "npy_header"]

FLUSH_BYTES = 1 << 26
"""Bytes after which a file that is being written is flushed to the disk in the background."""
WRITE_BYTES = 1 << 20
"""Bytes hashed and written at a time: more would leave the cache in between, and cost the system half as much again."""

_FLUSHER = ThreadPoolExecutor(2, thread_name_prefix="packtool-flush")


class NpyWriter:
    """Writes one `.npy` file of known shape, in order, hashing as it goes; the file appears when `close` succeeds.

    What was written is flushed to the disk in the background meanwhile, so that `close` finds little left to wait for.

    Args:
        path: final path; the bytes go to a temporary name beside it first.
        dtype: of the array, little-endian.
        shape: of the array; `write` must deliver exactly as many bytes.
    """

    def __init__(self, path: Path, dtype: np.dtype[Any] | str, shape: Sequence[int]) -> None:
        self.path = path
        self.dtype = np.dtype(dtype)
        self.shape = tuple(int(n) for n in shape)
        self._partial = path.with_name(path.name + PARTIAL)
        self._file = os.fdopen(create_file(self._partial), "wb", buffering=0)
        self._hash = xxhash.xxh3_128()
        self._bytes = 0
        self._flushed = 0
        self._flushing: Future[None] | None = None
        self._put(npy_header(self.dtype, self.shape))

    def write(self, data: np.ndarray[Any, Any] | bytes | memoryview) -> None:
        """Append array elements (C order) or their bytes."""
        if isinstance(data, np.ndarray):
            if data.dtype != self.dtype:
                raise TypeError(f"{self.path.name} holds {self.dtype}, not {data.dtype}")
            data = np.ascontiguousarray(data).reshape(-1).view(np.uint8).data
        self._put(data)

    def _put(self, data: bytes | memoryview) -> None:
        view = memoryview(data)
        self._bytes += len(view)
        for first in range(0, len(view), WRITE_BYTES):
            part = view[first : first + WRITE_BYTES]
            self._hash.update(part)
            while part:
                part = part[self._file.write(part) :]
        if self._bytes - self._flushed >= FLUSH_BYTES and (self._flushing is None or self._flushing.done()):
            self._settle()
            self._flushed = self._bytes
            self._flushing = _FLUSHER.submit(os.fdatasync, self._file.fileno())

    def _settle(self) -> None:
        """Wait for the background flush, and raise what it met: the system reports a lost page only once."""
        flushing, self._flushing = self._flushing, None
        if flushing is not None:
            flushing.result()

    def close(self) -> FileEntry:
        """Make the file durable under its final name."""
        expected = HEADER_BYTES + self.dtype.itemsize * int(np.prod(self.shape, dtype=np.int64))
        if self._bytes != expected:
            raise ValueError(f"{self.path.name}: wrote {self._bytes} of {expected} bytes")
        self._settle()
        os.fsync(self._file.fileno())
        self._file.close()
        self._partial.replace(self.path)
        return FileEntry(self.path.name, self.shape, self._bytes, self._hash.hexdigest())

    def __enter__(self) -> NpyWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: object, trace: TracebackType | None) -> None:
        if kind is not None:
            with suppress(OSError):  # another error is on its way already
                self._settle()  # the file must not be closed under it
            with suppress(OSError):
                self._file.close()
            with suppress(OSError):
                self._partial.unlink()


def write_array(path: Path, array: np.ndarray[Any, Any]) -> FileEntry:
    """Write one array as a whole, little-endian."""
    little = array.dtype.newbyteorder("<")
    with NpyWriter(path, little, array.shape) as out:
        out.write(array.astype(little, copy=False))
        return out.close()


def write_bytes(path: Path, data: bytes) -> None:
    """Write a small file atomically and durably, also where several processes write it at the same time."""
    LocalPlace(path.parent).write(path.name, data)
