"""A place is where a dataset lies: a directory, or a prefix in an object store, perhaps with copies on a local disk.

It is made once, from what the user typed, and passed on: readers of a dataset call its place and need not know what
kind it is. A place is pickled as its path or URL.

    LocalPlace     a directory; arrays are mapped
    StorePlace     s3://, gs://; arrays are read by ranges, a file appears when all of it is uploaded
    CachedPlace    the same, but arrays are copied to a local disk when they are first read
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any, BinaryIO, Protocol

import numpy as np
import numpy.typing as npt
import xxhash

from packtool.errors import DataError
from packtool.places.npy import FileEntry, npy_header

Array = npt.NDArray[Any]
I64 = npt.NDArray[np.int64]
AGAIN = "make it again, or copy it again"
DATASET_AGAIN = "make the dataset again, or copy it again"
LARGEST_JSON = 1 << 30
"""Bytes of the largest JSON file that is read: a manifest of more than a million shards."""


class Entry(Protocol):
    """A file as a manifest or a record lists it: its name in the place, its bytes, and their xxh3-128 in hex."""

    @property
    def name(self) -> str: ...
    @property
    def bytes(self) -> int: ...
    @property
    def xxh3_128(self) -> str: ...


class StoppedError(Exception):
    """Reading was cancelled."""


class Place(ABC):
    """A set of files with names such as ``tokens-00000.npy`` or ``bucket-02048/tokens-00000.npy``.

    Attributes:
        sound: arrays are checksummed on arrival.
        is_local: it lies on this machine, so that opening an array costs next to nothing.
        arrays: how many arrays a reader may keep open at once; None for all.
        late: items of an open array are read when they are needed, from what lies there then, and not checked.

    >>> from packtool.places.local import LocalPlace
    >>> str(LocalPlace("data/packed")), LocalPlace("data/packed").where("manifest.json")
    ('data/packed', 'data/packed/manifest.json')
    """

    sound = False
    is_local = False
    late = False
    arrays: int | None = None

    @abstractmethod
    def __str__(self) -> str:
        """Return the place as the user typed it."""

    @property
    def shown(self) -> Path | str:
        """Its name in results: its path, or its URL."""
        return str(self)

    @abstractmethod
    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the place as its path or URL. Places that are pickled alike are equal."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Place) and self.__reduce__() == other.__reduce__()

    def __hash__(self) -> int:
        return hash(self.__reduce__())

    @abstractmethod
    def where(self, name: str = "") -> str:
        """Return the name of a file of this place in messages."""

    @abstractmethod
    def below(self, name: str) -> Place:
        """Return a place inside this one, which no link may leave; this one for an empty name."""

    @property
    def full(self) -> str:
        """Its whole path or URL, however it was typed."""
        return str(self)

    @property
    @abstractmethod
    def name(self) -> str:
        """The name of datasets here: the last part of the path or URL."""

    @abstractmethod
    def absent(self) -> DataError | None:
        """Return the error for a place that holds nothing at all; None where it holds anything."""

    @abstractmethod
    def names(self) -> dict[str, int]:
        """List every file by its name, with its bytes; nothing where the place does not exist."""

    @abstractmethod
    def size(self, name: str) -> int | None:
        """Return the size of a file in bytes; None if there is no such file."""

    def stamp(self, name: str) -> object:
        """Return a stamp that differs once a file was replaced, without reading the file; None where there is none."""
        del name
        return None

    @abstractmethod
    def read(self, name: str, largest: int = LARGEST_JSON) -> bytes:
        """Return all of a small file.

        Raises:
            FileNotFoundError: there is no such file.
            DataError: it is not a regular file, or has more than `largest` bytes; the store refuses it.
        """

    @abstractmethod
    def blocks(self, name: str) -> Iterator[bytes]:
        """Yield the contents of a file, some MiB at a time. Errors as of `read`."""

    @abstractmethod
    def array(self, entry: FileEntry, dtype: np.dtype[Any] | str) -> Array:
        """Return an array file, read-only; raise a DataError where its header is not that of its entry and type."""

    @abstractmethod
    def ranges(self, name: str, first: I64, count: I64) -> list[memoryview]:
        """Return ranges of a file, by their first bytes, ascending, and sizes; read neighbours together, many at once.

        Raises:
            DataError: the file is gone, or too short.
        """

    @abstractmethod
    def write(self, name: str, data: bytes) -> None:
        """Write a small file, which appears whole or not at all and replaces what had its name."""

    @abstractmethod
    def create(self, name: str, data: bytes, replaces: bytes | None = None) -> bool:
        """Write a small file as `write` does, unless there is one; of several writers only one gets True.

        Args:
            replaces: contents that the file must still have; in a directory, the caller holds its lock.
        """

    @abstractmethod
    def put(self, name: str, file: Path, xxh3_128: str, *, durable: bool = True) -> None:
        """Move a finished local file here. It appears whole or not at all, and goes from where it was after that.

        Args:
            file: complete; on the file system of the place, if that is local.
            xxh3_128: of the file as it was written.
            durable: its name is to outlive a crash of the machine.

        Raises:
            DataError: the file has changed since it was written, or did not arrive as it was sent.
        """

    @abstractmethod
    def remove(self, names: Iterable[str]) -> None:
        """Remove files; missing files are passed over."""

    def problem(self, entry: Entry) -> DataError | None:
        """Return the error for a file that deviates from its expected size or checksum; None if it does not."""
        try:
            self.require_size(entry, self.size(entry.name))
            digest = self.digest(entry.name)
        except FileNotFoundError:
            return self.missing(entry.name)
        except OSError as error:
            what = f"can't be read ({error.strerror})"
            remedy = "check the disk and the permissions"
            return DataError("unreadable-input", what, remedy=remedy, where=self.where(entry.name))
        except DataError as error:
            return error
        return None if digest == entry.xxh3_128 else self.changed(entry.name)

    def digest(self, name: str, out: BinaryIO | None = None, stop: Event | None = None) -> str:
        """Return the xxh3-128 of a file, in hex, and copy the file to `out` if it is given.

        Raises:
            StoppedError: `stop` was set meanwhile. Other errors as in `read`.
        """
        hashed = xxhash.xxh3_128()
        for block in self.blocks(name):
            if stop is not None and stop.is_set():
                raise StoppedError
            hashed.update(block)
            if out is not None:
                out.write(block)
        return hashed.hexdigest()

    def checked(self, entry: Entry) -> bytes:
        """Return all of a small file that a manifest lists; raise a DataError where it is not what was written."""
        try:
            data = self.read(entry.name)
        except FileNotFoundError:
            raise self.missing(entry.name) from None
        self.require_size(entry, len(data))
        if xxhash.xxh3_128_hexdigest(data) != entry.xxh3_128:
            raise self.changed(entry.name)
        return data

    def require(self, entries: Sequence[Entry]) -> None:
        """Raise a DataError for the first file that is missing, or whose size differs from its entry; read no file."""
        for entry in entries:
            self.require_size(entry, self.size(entry.name))

    def require_size(self, entry: Entry, size: int | None) -> None:
        """Raise a DataError for a file that is missing (None), or whose size differs from its entry in the manifest."""
        if size is None:
            raise self.missing(entry.name)
        if size != entry.bytes:
            what = f"has {size} bytes, but the manifest says {entry.bytes}"
            raise DataError("wrong-size", what, remedy=AGAIN, where=self.where(entry.name))

    def require_small(self, name: str, size: int, largest: int) -> None:
        """Raise a DataError for a file larger than any of its kind."""
        if size > largest:
            what = f"has {size} bytes, more than any of its kind"
            raise DataError("wrong-size", what, remedy=AGAIN, where=self.where(name))

    def missing(self, name: str) -> DataError:
        """Return the error for a file that a manifest names and that is not there."""
        what = "named in the manifest, but not there"
        return DataError("missing-shard", what, remedy=AGAIN, where=self.where(name))

    def changed(self, name: str) -> DataError:
        """Return the error for a file with another checksum."""
        what = "its checksum differs from the manifest's: the file has changed since it was written"
        return DataError("wrong-checksum", what, remedy=AGAIN, where=self.where(name))

    def damaged(self, name: str, what: str) -> DataError:
        """Return the error for a file that is not the array that its manifest describes."""
        return DataError("damaged-shard", what, remedy=AGAIN, where=self.where(name))


@dataclass(frozen=True)
class MappedFile:
    """An open array, and the file that it must be."""

    place: Place  # where the file lies
    entry: FileEntry  # entry of the file in the manifest
    array: Array  # mapped, with the header that the manifest promises

    @classmethod
    def opened(cls, place: Place, entry: FileEntry, dtype: np.dtype[Any] | str) -> MappedFile:
        """Open the array of a file. Errors as of `Place.array`."""
        return cls(place, entry, place.array(entry, dtype))

    def __reduce__(self) -> tuple[Any, ...]:
        return MappedFile.opened, (self.place, self.entry, self.array.dtype)

    def hash_of_header(self) -> xxhash.xxh3_128:
        """Start a hash with the file's header, to go on with its `bytes`."""
        return xxhash.xxh3_128(npy_header(self.array.dtype, self.array.shape))

    def bytes(self) -> memoryview:
        """Return the bytes behind the header."""
        return self.array.reshape(-1).view(np.uint8).data

    def require(self, digest: str) -> None:
        """Raise a DataError where a checksum is not the manifest's."""
        if digest != self.entry.xxh3_128:
            raise self.place.changed(self.entry.name)
