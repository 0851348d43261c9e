"""Read a file of the corpus, local or in an object store: hash it, and check that it stays the file that was listed."""

from __future__ import annotations

import errno
import io
import os
import stat
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import xxhash

from packtool.errors import DataError
from packtool.places.store import StorePlace
from packtool.places.url import is_remote, require_no_secret
from packtool.text.corpus.records import CorpusFile, shown

_DRAIN = 1 << 22


def in_store(location: str) -> tuple[StorePlace, str]:
    """Split a URL into its bucket and the name inside it.

    Raises:
        UsageError: the URL holds credentials.

    >>> in_store("s3://bucket/a/b.jsonl")
    (StorePlace('s3://bucket'), 'a/b.jsonl')
    """
    require_no_secret(location)
    scheme, _, rest = location.partition("://")
    bucket, _, name = rest.partition("/")
    return StorePlace(f"{scheme}://{bucket}"), name.rstrip("/")


def open_raw(location: str) -> Any:
    """Open a file's own bytes, seekable.

    Raises:
        DataError: not a regular file.
    """
    if is_remote(location):
        return StoreFile(*in_store(location))
    if not stat.S_ISREG(Path(location).stat().st_mode):  # asked before: to open a pipe waits for a writer
        what = "neither a file nor a directory"
        remedy = "give a file; to read a pipe, give it as the only input, or as -"
        raise DataError("not-a-file", what, remedy=remedy, where=shown(location))
    return io.FileIO(location)


def state_of(raw: Any) -> tuple[int, int, int]:
    """Return the size in bytes, the modification time in ns and the inode of an open file; of a remote one 0 for an
    inode.

    A local file is asked by its handle: another file may have its name by now.
    """
    if isinstance(raw, StoreFile):
        return (*(raw.modified() or (0, 0)), 0)
    status = os.fstat(raw.fileno())
    return status.st_size, status.st_mtime_ns, status.st_ino


def read_up_to(stream: Any, size: int) -> bytes:
    """Read up to this many bytes of a stream, however few it gives at a time."""
    parts, left = [], size
    while left and (data := stream.read(left)):
        parts.append(data)
        left -= len(data)
    return b"".join(parts)


class StoreFile(io.RawIOBase):
    """A file of an object store, each read of which is a request.

    Raises:
        FileNotFoundError: there is no such file.
    """

    def __init__(self, place: StorePlace, name: str) -> None:
        size = place.size(name)
        if size is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), place.where(name))
        self._place, self._name = place, name
        self._size = size
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def modified(self) -> tuple[int, int] | None:
        """Return the size and the modification time in ns that the store has now; None if the file is gone."""
        return self._place.modified(self._name)

    def read(self, size: int = -1, /) -> bytes:
        """Read like any file; nothing at the end."""
        left = max(self._size - self._at, 0)
        count = left if size < 0 else min(size, left)
        if not count:
            return b""
        (data,) = self._place.ranges(self._name, np.array([self._at]), np.array([count]))
        self._at += count
        return bytes(data)


class FileBytes(io.RawIOBase):
    """A file's own bytes.

    Args:
        file: as it was listed.
        hashed: hash what is read; it must then be read from beginning to end.

    Raises:
        DataError: it is not there any more, or another one is; later, it changed.
    """

    def __init__(self, file: CorpusFile, *, hashed: bool = False) -> None:
        super().__init__()
        self._file = file
        try:
            self._raw: Any = open_raw(file.location)
        except FileNotFoundError:
            raise changed(file, "it is gone") from None
        self._hash = xxhash.xxh3_128() if hashed else None
        self._at = 0
        try:
            self.require_unchanged()
        except BaseException:
            self.close()
            raise

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        """Read the next bytes, at most `size`; all that are left if it is negative."""
        if size < 0:
            size = max(self._file.bytes - self._at, 0)
        data: bytes = self._raw.read(size)
        self._at += len(data)
        if self._hash is not None:
            self._hash.update(data)
        return data

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """Go to a place; not where the file is hashed. The end is that of the file as it was listed."""
        assert self._hash is None
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._file.bytes}[whence]
        self._raw.seek(self._at)
        return self._at

    def tell(self) -> int:
        """Return how far it was read."""
        return self._at

    def digest(self) -> str:
        """Hash the whole file, including what readers skipped: xxh3-128, hex."""
        assert self._hash is not None
        while self.read(_DRAIN):
            pass
        return self._hash.hexdigest()

    def require_unchanged(self) -> None:
        """Check that nobody writes to the file while it is read.

        Raises:
            DataError: its size, modification time or inode is another than when it was listed.
        """
        now = state_of(self._raw)
        listed = (self._file.bytes, self._file.modified, self._file.inode)
        if now != listed:
            what = f"it had {listed[0]:,} bytes and has {now[0]:,}" if now[0] != listed[0] else "it was written to"
            raise changed(self._file, "another file is in its place" if now[2] != listed[2] else what)

    def close(self) -> None:
        super().close()
        self._raw.close()


def changed(file: CorpusFile, what: str) -> DataError:
    """Return the error for a file that is being written to."""
    what = f"changed while the command was at work: {what}"
    remedy = "run the command again once nothing writes to the input"
    return DataError("input-changed", what, remedy=remedy, where=shown(file.location))


def file_digest(file: CorpusFile) -> str:
    """Hash a file as stored: xxh3-128, hex.

    Raises:
        DataError: it changed since it was listed.
    """
    with closing(FileBytes(file, hashed=True)) as source:
        digest = source.digest()
        source.require_unchanged()
    return digest
