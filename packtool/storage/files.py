"""Writing files that are either whole or not there: temporary name, fsync, rename. And `.npy` files whose bytes are
hashed as they are written. Reading them is in `reading.py`."""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import xxhash

from packtool.places.npy import HEADER_BYTES, ArrayName, Count, Digest, FileEntry, npy_header

__all__ = ["HEADER_BYTES", "ArrayName", "Count", "Digest", "FileEntry", "npy_header"]

FLUSH_BYTES = 1 << 26
"""Bytes after which a file that is being written is flushed to the disk in the background."""
WRITE_BYTES = 1 << 20
"""Bytes hashed and written at a time: more would leave the cache in between, and cost the system half as much again."""
PARTIAL = ".partial"
"""Suffix of a file that is still being written."""

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
        self._file = os.fdopen(create(self._partial), "wb", buffering=0)
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


def create(path: Path) -> int:
    """A file descriptor of a new file, to write to. What has its name is removed first: nothing is written through a
    link that somebody put there."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        return os.open(path, flags, 0o666)
    except FileExistsError:
        path.unlink()
        return os.open(path, flags, 0o666)


def write_bytes(path: Path, data: bytes) -> None:
    """Write a small file atomically and durably."""
    partial = path.with_name(path.name + PARTIAL)
    with os.fdopen(create(partial), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)
    sync_directory(path.parent)


def write_shared(path: Path, data: bytes) -> None:
    """As `write_bytes`, where several processes may write the same file at the same time."""
    written = _write_apart(path, data)
    written.replace(path)
    sync_directory(path.parent)


def write_once(path: Path, data: bytes) -> bool:
    """As `write_shared`, for the first of several processes alone; whether it was this one."""
    written = _write_apart(path, data)
    try:
        path.hardlink_to(written)
    except FileExistsError:
        return False
    except OSError:  # a file system without links
        if path.exists():
            return False
        written.replace(path)
    finally:
        written.unlink(missing_ok=True)
    sync_directory(path.parent)
    return True


def _write_apart(path: Path, data: bytes) -> Path:
    """Write a small file durably, under a name that nobody else uses."""
    apart = path.with_name(f"{path.name}.{secrets.token_hex(4)}{PARTIAL}")
    with os.fdopen(create(apart), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    return apart


def sync_directory(path: Path) -> None:
    """Make the names in a directory durable."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
