"""Write files that are either whole or absent, hashed on the way: temporary name, fsync, rename."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import numpy as np
import xxhash

from packtool.formats.schema import OtherFile
from packtool.places.local import PARTIAL, LocalPlace, create_file
from packtool.places.npy import HEADER_BYTES, FileEntry, npy_header
from packtool.support.naming import naming

FLUSH_BYTES = 1 << 26
"""Bytes after which a file that is being written is flushed to the disk in the background."""
WRITE_BYTES = 1 << 20
"""Bytes hashed and written at a time: more would leave the cache in between, and cost the system half as much again."""

_FLUSHER = ThreadPoolExecutor(2, thread_name_prefix="packtool-flush")


class HashedFile:
    """Writes one file in order, hashing as it goes; it appears whole, at the end, or not at all.

    What was written is flushed to the disk in the background meanwhile, so that little is left to wait for.

    Args:
        path: final path; the bytes go to a temporary name next to it first.
        region: the byte to begin with, in a file that others write to as well and that stays under its temporary name;
            None for a file of its own.
    """

    def __init__(self, path: Path, region: int | None = None) -> None:
        self.path = path
        self._region = region
        self._partial = path.with_name(path.name + PARTIAL)
        shared = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        handle = create_file(self._partial) if region is None else os.open(self._partial, shared, 0o666)
        self._file = os.fdopen(handle, "wb", buffering=0)
        self._file.seek(region or 0)
        self._hash = xxhash.xxh3_128()
        self._bytes = 0
        self._flushed = 0
        self._flushing: Future[None] | None = None

    def _put(self, data: Any) -> int:
        """Append an array's elements (C order), or bytes; return how many bytes that are."""
        view = np.ascontiguousarray(data).reshape(-1).view(np.uint8).data if isinstance(data, np.ndarray) else data
        view = memoryview(view)
        self._bytes += view.nbytes
        for first in range(0, view.nbytes, WRITE_BYTES):
            part = view[first : first + WRITE_BYTES]
            self._hash.update(part)
            with naming(self.path):
                while part:
                    part = part[self._file.write(part) :]
        if self._bytes - self._flushed >= FLUSH_BYTES and (self._flushing is None or self._flushing.done()):
            self._settle()
            self._flushed = self._bytes
            self._flushing = _FLUSHER.submit(os.fdatasync, self._file.fileno())
        return view.nbytes

    def _settle(self) -> None:
        """Wait for the background flush and raise its error: the system reports a lost page only once."""
        flushing, self._flushing = self._flushing, None
        if flushing is not None:
            with naming(self.path):
                flushing.result()

    def _end(self) -> str:
        """Make the file durable under its final name; return its xxh3-128."""
        self._settle()
        with naming(self.path):
            os.fsync(self._file.fileno())
        self._file.close()
        if self._region is None:
            self._partial.replace(self.path)
        return self._hash.hexdigest()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if kind is not None:
            remove = [self._partial.unlink] if self._region is None else []
            for leave in (self._settle, self._file.close, *remove):  # not closed under the flush
                with suppress(OSError):  # another error is on its way already
                    leave()


class NpyWriter(HashedFile):
    """Writes one `.npy` file of known shape; it appears when `close` succeeds.

    Args:
        path: final path.
        dtype: of the array, little-endian.
        shape: of the array; `write` must deliver exactly as many bytes.
    """

    def __init__(self, path: Path, dtype: np.dtype[Any] | str, shape: Sequence[int]) -> None:
        super().__init__(path)
        self.dtype = np.dtype(dtype)
        self.shape = tuple(map(int, shape))
        self._put(npy_header(self.dtype, self.shape))

    def write(self, data: np.ndarray[Any, Any] | bytes | memoryview) -> None:
        """Append array elements (C order) or their bytes."""
        if isinstance(data, np.ndarray) and data.dtype != self.dtype:
            raise TypeError(f"{self.path.name} holds {self.dtype}, not {data.dtype}")
        self._put(data)

    def close(self) -> FileEntry:
        """Make the file durable under its final name."""
        expected = HEADER_BYTES + self.dtype.itemsize * int(np.prod(self.shape, dtype=np.int64))
        if self._bytes != expected:
            raise ValueError(f"{self.path.name}: wrote {self._bytes} of {expected} bytes")
        return FileEntry(self.path.name, self.shape, self._bytes, self._end())


def write_array(path: Path, array: np.ndarray[Any, Any]) -> FileEntry:
    """Write one array as a whole, little-endian."""
    little = array.dtype.newbyteorder("<")
    with NpyWriter(path, little, array.shape) as out:
        out.write(array.astype(little, copy=False))
        return out.close()


def write_listed(path: Path, data: bytes) -> OtherFile:
    """Write a small file as `write_bytes` does, and return its entry for a manifest."""
    write_bytes(path, data)
    return OtherFile(path.name, len(data), xxhash.xxh3_128_hexdigest(data))


def write_bytes(path: Path, data: bytes) -> None:
    """Write a small file atomically and durably, also where several processes write it at the same time."""
    LocalPlace(path.parent).write(path.name, data)
