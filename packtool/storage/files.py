"""Files that are either whole or not there: temporary name, fsync, rename. And `.npy` files whose bytes are hashed as
they are written."""

from __future__ import annotations

import io
import mmap
import os
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec
import numpy as np
import xxhash

from packtool.errors import DataError

HEADER_BYTES = 4096
"""Size of every `.npy` header packtool writes, so that the array begins on a page of its own."""
FLUSH_BYTES = 1 << 26
"""Bytes after which a file that is being written is flushed to the disk in the background."""
WRITE_BYTES = 1 << 20
"""Bytes hashed and written at a time: more would leave the cache in between, and cost the system half as much again."""
PARTIAL = ".partial"
"""Suffix of a file that is still being written."""

_FLUSHER = ThreadPoolExecutor(2, thread_name_prefix="packtool-flush")


class FileEntry(msgspec.Struct, frozen=True):
    """One array file as a manifest lists it: name relative to the manifest, shape, bytes, xxh3-128 (hex) of it all."""

    name: str
    shape: tuple[int, ...]
    bytes: int
    xxh3_128: str


def npy_header(dtype: np.dtype[Any], shape: Sequence[int]) -> bytes:
    """A version 1.0 `.npy` header, padded with spaces to `HEADER_BYTES`."""
    buffer = io.BytesIO()
    description = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": tuple(shape)}
    text = repr(description).encode("latin1")
    buffer.write(np.lib.format.magic(1, 0))
    length = HEADER_BYTES - buffer.tell() - 2
    buffer.write(length.to_bytes(2, "little"))
    buffer.write(text.ljust(length - 1) + b"\n")
    return buffer.getvalue()


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
        self._file = self._partial.open("wb", buffering=0)
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
            self._flushed = self._bytes
            self._flushing = _FLUSHER.submit(os.fdatasync, self._file.fileno())

    def _settle(self) -> None:
        """Wait for the background flush: its file must not be closed under it."""
        if self._flushing is not None:
            self._flushing.exception()

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
            self._settle()
            self._file.close()
            self._partial.unlink(missing_ok=True)


def write_array(path: Path, array: np.ndarray[Any, Any]) -> FileEntry:
    """Write one array as a whole, little-endian."""
    little = array.dtype.newbyteorder("<")
    with NpyWriter(path, little, array.shape) as out:
        out.write(array.astype(little, copy=False))
        return out.close()


def open_array(directory: Path, entry: FileEntry) -> np.ndarray[Any, Any]:
    """Memory-map one array file and hold it against its entry in the manifest."""
    path = directory / entry.name
    try:
        array: np.ndarray[Any, Any] = np.load(path, mmap_mode="r")
    except FileNotFoundError:
        raise DataError(
            "missing-shard", "named in the manifest, but not there", remedy="make it again", where=str(path)
        ) from None
    except ValueError as error:
        raise DataError(
            "damaged-shard", f"not a readable array ({error})", remedy="make it again", where=str(path)
        ) from None
    if array.shape != entry.shape:
        raise DataError(
            "damaged-shard",
            f"has shape {array.shape}, but the manifest says {entry.shape}",
            remedy="make it again",
            where=str(path),
        )
    return array


def release(arrays: Iterable[np.ndarray[Any, Any]]) -> None:
    """Give back the memory that maps these arrays' files; what is read again is mapped again."""
    for array in arrays:
        mapped: Any = array.base
        if isinstance(mapped, mmap.mmap):
            mapped.madvise(mmap.MADV_DONTNEED)


def write_bytes(path: Path, data: bytes) -> None:
    """Write a small file atomically and durably."""
    partial = path.with_name(path.name + PARTIAL)
    with partial.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)
    sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    """Make the names in a directory durable."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def digest(path: Path) -> str:
    """xxh3-128 (hex) of a file's bytes, as `xxhsum -H2` prints it."""
    hashed = xxhash.xxh3_128()
    with path.open("rb") as file:
        while block := file.read(1 << 22):
            hashed.update(block)
    return hashed.hexdigest()
