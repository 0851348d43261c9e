"""Files as they are found: nothing about them is believed until it has been looked at.

A dataset may come from anywhere. So only regular files are opened, none through a symbolic link that leads out of its
dataset, and an array is mapped only where its header is, byte for byte, the one that its manifest promises.
"""

from __future__ import annotations

import errno
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

import msgspec
import numpy as np
import xxhash

from packtool.errors import DataError
from packtool.places.maps import mapped
from packtool.places.mirror import by_ranges, fetched, used
from packtool.places.npy import header_problem
from packtool.places.ranges import RangeReader
from packtool.places.transfer import download
from packtool.storage.files import HEADER_BYTES, FileEntry, npy_header
from packtool.storage.ranged import RangedArray

_Content = TypeVar("_Content")
_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW
_AGAIN = "make it again, or copy it again"
_TRIES = 8
"""How often a file is fetched that another process removes before it is opened, to make room for its own."""
LARGEST_JSON = 1 << 30
"""Bytes of the largest JSON file that is read: a manifest of more than a million shards."""


def open_inside(directory: Path, name: str) -> int:
    """A file descriptor of a regular file in a directory, to read from.

    Args:
        directory: a dataset, or one of its buckets.
        name: relative to it.

    Raises:
        DataError: it is something else than a file, or a symbolic link that leads out of the directory.
        OSError: it can't be opened.
    """
    path = directory / name
    try:
        handle = _opened(path)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        require_inside(directory, path)
        handle = os.open(os.path.realpath(path), _FLAGS)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise DataError(
            "not-a-regular-file",
            "not a regular file, but a directory, pipe, socket or device",
            remedy="remove it, and make or copy the dataset again",
            where=str(path),
        )
    return handle


def _opened(path: Path) -> int:
    """As `os.open`; a file that lies in an object store is fetched first."""
    for _ in range(_TRIES):
        try:
            handle = os.open(path, _FLAGS)
        except FileNotFoundError:
            if not fetched(path):
                break
        else:
            used(path)
            return handle
    return os.open(path, _FLAGS)


def require_inside(directory: Path, path: Path) -> None:
    """Refuse a path that leads out of a directory.

    Raises:
        DataError: it does.
    """
    target = os.path.realpath(path)  # unlike Path.resolve, it does not raise for a link to itself
    if not Path(target).is_relative_to(os.path.realpath(directory)):
        raise DataError(
            "link-leaves-dataset",
            f"a symbolic link that leads out of the dataset, to {target}",
            remedy="if you trust it, copy what it points to into its place",
            where=str(path),
        )


def subdirectory(directory: Path, name: str) -> Path:
    """A directory inside a dataset; the dataset itself for an empty name."""
    path = directory / name if name else directory
    if name:
        require_inside(directory, path)
    return path


def read_file(path: Path, largest: int = LARGEST_JSON) -> bytes:
    """All of a regular file, where it is not larger than `largest` bytes."""
    with os.fdopen(open_inside(path.parent, path.name), "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size > largest:
            what = f"has {size} bytes, more than any of its kind"
            raise DataError("wrong-size", what, remedy=_AGAIN, where=str(path))
        return file.read()


def decode(raw: bytes, kind: type[_Content]) -> _Content:
    """The value that JSON holds.

    Raises:
        ValueError: it is not JSON, not UTF-8, nested too deeply, or of another type; with the reason.
    """
    try:
        return msgspec.json.decode(raw, type=kind)
    except UnicodeDecodeError:
        raise ValueError("not UTF-8") from None
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except (msgspec.MsgspecError, ValueError) as error:
        raise ValueError(str(error)) from None


def open_array(directory: Path, entry: FileEntry, dtype: np.dtype[Any] | str) -> np.ndarray[Any, Any]:
    """Memory-map one array file, after holding it against its entry in the manifest and the type it must have. Where it
    is read by ranges, a `RangedArray`.

    Raises:
        DataError: it is missing, or another array.
    """
    path, wanted = directory / entry.name, np.dtype(dtype)
    if (there := by_ranges(path)) is not None:
        reader = RangeReader(there[0])
        _require_as_promised(path, reader.read(0, min(HEADER_BYTES, there[1])), there[1], wanted, entry.shape)
        return cast("np.ndarray[Any, Any]", RangedArray(reader, wanted, entry.shape))
    try:
        with os.fdopen(open_inside(directory, entry.name), "rb") as file:
            size = os.fstat(file.fileno()).st_size
            _require_as_promised(path, file.read(HEADER_BYTES), size, wanted, entry.shape)
            if size == HEADER_BYTES:
                return np.empty(entry.shape, wanted)
            return mapped(file.fileno(), size)[HEADER_BYTES:].view(wanted).reshape(entry.shape)
    except FileNotFoundError:
        raise missing(path) from None


@dataclass(frozen=True)
class MappedFile:
    """An array that `open_array` mapped, and the file that it must be.

    Attributes:
        path: of the file.
        array: mapped, with the header that its manifest promises.
        xxh3_128: of the whole file, as the manifest says.
    """

    path: Path
    array: np.ndarray[Any, Any]
    xxh3_128: str

    def __reduce__(self) -> tuple[Any, ...]:
        return _map_again, (self.path.absolute(), self.array.shape, self.array.dtype, self.xxh3_128)

    def hash_of_header(self) -> xxhash.xxh3_128:
        """A hash that was given the file's header, to go on with its `bytes`."""
        return xxhash.xxh3_128(npy_header(self.array.dtype, self.array.shape))

    def bytes(self) -> memoryview:
        """What follows the header."""
        return self.array.reshape(-1).view(np.uint8).data

    def require(self, digest: str) -> None:
        """Hold what was found against the manifest.

        Raises:
            DataError: they differ.
        """
        if digest != self.xxh3_128:
            raise _changed(self.path)


def _map_again(path: Path, shape: tuple[int, ...], dtype: np.dtype[Any], xxh3_128: str) -> MappedFile:
    """The same file, in another process."""
    return MappedFile(path, open_array(path.parent, FileEntry(path.name, shape, 0, xxh3_128), dtype), xxh3_128)


def _require_as_promised(path: Path, header: bytes, size: int, dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
    """Hold the header and the size of an array file against its entry in the manifest.

    Raises:
        DataError: they differ.
    """
    if problem := header_problem(header, size, dtype, shape):
        raise _damaged(path, problem)


def _damaged(path: Path, what: str) -> DataError:
    return DataError("damaged-shard", what, remedy=_AGAIN, where=str(path))


def missing(path: Path) -> DataError:
    """The error for a file that a manifest names and that is not there."""
    return DataError("missing-shard", "named in the manifest, but not there", remedy=_AGAIN, where=str(path))


def problem_with(directory: Path, name: str, size: int, xxh3_128: str) -> DataError | None:
    """What is wrong with a file that must have this size and this checksum; None if nothing is."""
    path, hashed = directory / name, xxhash.xxh3_128()
    try:
        if (there := by_ranges(path)) is not None:
            if there[1] != size:
                return _wrong_size(path, there[1], size)
            for block in download(*there):
                hashed.update(block)
        else:
            with os.fdopen(open_inside(directory, name), "rb") as file:
                if (found := os.fstat(file.fileno()).st_size) != size:
                    return _wrong_size(path, found, size)
                while block := file.read(1 << 22):
                    hashed.update(block)
    except FileNotFoundError:
        return missing(path)
    except OSError as error:
        what = f"can't be read ({error.strerror})"
        return DataError("unreadable-input", what, remedy="check the disk and the permissions", where=str(path))
    except DataError as error:
        return error
    return None if hashed.hexdigest() == xxh3_128 else _changed(path)


def _wrong_size(path: Path, found: int, size: int) -> DataError:
    what = f"has {found} bytes, but the manifest says {size}"
    return DataError("wrong-size", what, remedy=_AGAIN, where=str(path))


def _changed(path: Path) -> DataError:
    what = "its checksum differs from the manifest's: the file has changed since it was written"
    return DataError("wrong-checksum", what, remedy=_AGAIN, where=str(path))
