"""Datasets in directories. Nothing about their files is trusted before it is checked.

A dataset may come from anywhere. So only regular files are opened, and no symbolic link out of the directory is
followed. An array is mapped only if its header is, byte for byte, the one that its manifest promises.
"""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import shutil
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from packtool.errors import DataError
from packtool.places.npy import HEADER_BYTES, FileEntry, header_problem
from packtool.places.place import I64, LARGEST_JSON, Array, Place
from packtool.support.mapped import mapped
from packtool.support.naming import naming

BLOCK_BYTES = 1 << 22
PARTIAL = ".partial"
"""Suffix of a file that is still being written."""
_NOT_OFFERED = (errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EBADF)
"""What file systems answer that can't make the names in a directory durable."""
READING = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW


class LocalPlace(Place):
    """A directory, which need not exist before something is written to it."""

    is_local = True

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def __str__(self) -> str:
        return str(self.path)

    @property
    def shown(self) -> Path:
        return self.path

    def __repr__(self) -> str:
        return f"LocalPlace({str(self.path)!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return LocalPlace, (self.path.absolute(),)

    def where(self, name: str = "") -> str:
        return str(self.path / name)

    def below(self, name: str) -> LocalPlace:
        if not name:
            return self
        require_inside(self.path, self.path / name)
        return LocalPlace(self.path / name)

    @property
    def full(self) -> str:
        return str(self.path.resolve())

    @property
    def name(self) -> str:
        return self.path.resolve().name

    def absent(self) -> DataError | None:
        if self.path.is_dir():
            return None
        what = "a file, not a directory" if self.path.exists() else "no such directory"
        return DataError("missing-input", what, remedy="check the path", where=str(self))

    def names(self) -> dict[str, int]:
        sizes = {}
        for folder, _, files in os.walk(self.path):
            for file in files:
                path = Path(folder, file)
                with suppress(OSError):
                    sizes[path.relative_to(self.path).as_posix()] = path.stat().st_size
        return sizes

    def size(self, name: str) -> int | None:
        try:
            handle = open_inside(self.path, name)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG):
                return None
            raise
        try:
            return os.fstat(handle).st_size
        finally:
            os.close(handle)

    def stamp(self, name: str) -> object:
        try:
            about = (self.path / name).stat()
        except OSError:
            return None
        return about.st_ino, about.st_size, about.st_mtime_ns

    def read(self, name: str, largest: int = LARGEST_JSON) -> bytes:
        with os.fdopen(open_inside(self.path, name), "rb") as file:
            size = os.fstat(file.fileno()).st_size
            self.require_small(name, size, largest)
            return file.read()

    def blocks(self, name: str) -> Iterator[bytes]:
        with os.fdopen(open_inside(self.path, name), "rb") as file:
            while block := file.read(BLOCK_BYTES):
                yield block

    def array(self, entry: FileEntry, dtype: np.dtype[Any] | str) -> Array:
        return map_array(self.open(entry.name), entry, dtype, self)

    def open(self, name: str) -> int:
        """Return a file descriptor to read a file; raise a DataError if there is no such file."""
        try:
            return open_inside(self.path, name)
        except FileNotFoundError:
            raise self.missing(name) from None

    def ranges(self, name: str, first: I64, count: I64) -> list[memoryview]:
        with os.fdopen(open_inside(self.path, name), "rb") as file:
            parts = [os.pread(file.fileno(), n, at) for at, n in zip(first.tolist(), count.tolist(), strict=True)]
        if any(len(part) != n for part, n in zip(parts, count.tolist(), strict=True)):
            raise self.damaged(name, "is shorter than its manifest says")
        return [memoryview(part) for part in parts]

    def write(self, name: str, data: bytes) -> None:
        path = self.path / name
        self._write_apart(path, data).replace(path)
        sync_directory(path.parent)

    def create(self, name: str, data: bytes, replaces: bytes | None = None) -> bool:
        path = self.path / name
        if replaces is not None:
            # Not atomic: the caller holds the lock of the directory.
            if not path.exists() or path.read_bytes() != replaces:
                return False
            self.write(name, data)
            return True
        # A link, not a rename: it fails if the name is there, so one of two runs makes it. And the file is whole before
        # it has its name.
        apart = self._write_apart(path, data)
        try:
            path.hardlink_to(apart)
        except FileExistsError:
            return False
        except OSError:  # a file system without links: the lock alone keeps others out
            if path.exists():
                return False
            apart.replace(path)
        finally:
            apart.unlink(missing_ok=True)
        sync_directory(path.parent)
        return True

    def put(self, name: str, file: Path, xxh3_128: str, *, durable: bool = True) -> None:
        del xxh3_128
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        file.replace(path)
        if durable:
            sync_directory(path.parent)

    def remove(self, names: Iterable[str]) -> None:
        for name in names:
            path = self.path / name
            path.unlink(missing_ok=True)
            for directory in list(path.parents)[: name.count("/")]:
                with suppress(OSError):
                    directory.rmdir()  # if it is empty

    def _write_apart(self, path: Path, data: bytes) -> Path:
        """Write a small file durably, under a unique name."""
        path.parent.mkdir(parents=True, exist_ok=True)
        apart = path.with_name(f"{path.name}.{secrets.token_hex(4)}{PARTIAL}")
        with naming(path), os.fdopen(create_file(apart), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        return apart


def map_array(handle: int, entry: FileEntry, dtype: np.dtype[Any] | str, place: Place) -> Array:
    """Map an open file after `require_array`, and close it. `place`: where it came from, for messages."""
    try:
        size = require_array(handle, entry, dtype, place)
        if size == HEADER_BYTES:
            return np.empty(entry.shape, dtype)
        with naming(place.where(entry.name)):
            return mapped(handle, size)[HEADER_BYTES:].view(dtype).reshape(entry.shape)
    finally:
        os.close(handle)


def require_array(handle: int, entry: FileEntry, dtype: np.dtype[Any] | str, place: Place) -> int:
    """Raise a DataError unless an open file is the array that its entry promises; return the bytes of the file."""
    size = os.fstat(handle).st_size
    problem = header_problem(os.pread(handle, HEADER_BYTES, 0), size, np.dtype(dtype), entry.shape)
    if problem:
        raise place.damaged(entry.name, problem)
    return size


def open_inside(directory: Path, name: str) -> int:
    """Return a file descriptor of a regular file in a dataset or bucket, to read from.

    Raises:
        DataError: it is not a regular file, or it is a symbolic link that leads out of the directory.
        OSError: it can't be opened.
    """
    path = directory / name
    try:
        handle = os.open(path, READING)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        require_inside(directory, path)
        handle = os.open(os.path.realpath(path), READING)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        what = "not a regular file, but a directory, pipe, socket or device"
        remedy = "remove it, and make or copy the dataset again"
        raise DataError("not-a-regular-file", what, remedy=remedy, where=str(path))
    return handle


def require_inside(directory: Path, path: Path) -> None:
    """Raise a DataError where a path leads out of a directory."""
    target = os.path.realpath(path)  # unlike Path.resolve, it does not raise for a link to itself
    if not Path(target).is_relative_to(os.path.realpath(directory)):
        what = f"a symbolic link that leads out of the dataset, to {target}"
        remedy = "if you trust it, copy what it points to into its place"
        raise DataError("link-leaves-dataset", what, remedy=remedy, where=str(path))


def create_file(path: Path) -> int:
    """Return a file descriptor of a new file, to write to. A file of that name is removed first: nothing is
    written through a link that somebody put there."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        return os.open(path, flags, 0o666)
    except FileExistsError:
        path.unlink()
        return os.open(path, flags, 0o666)


def sync_directory(path: Path) -> bool:
    """Make the names in a directory durable, and return whether its file system can: not all of FUSE and SMB do."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in _NOT_OFFERED:
            raise
        return False
    finally:
        os.close(handle)
    return True


def remove_tree(path: Path) -> None:
    """Remove a directory, and the two above it if they are then empty."""
    shutil.rmtree(path, ignore_errors=True)
    with suppress(OSError):
        for parent in list(path.parents)[:2]:
            parent.rmdir()


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock, which the system releases when its holder ends for whatever reason."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
