"""Read a file of the corpus: hash it on the way, and check that it is still the file that was listed."""

from __future__ import annotations

import os
from typing import Any, NoReturn

import xxhash

from packtool.corpus.open import in_store, open_raw
from packtool.corpus.pages import PagedFile, Pages
from packtool.corpus.records import CorpusFile
from packtool.corpus.walk import shown
from packtool.errors import DataError
from packtool.places.url import is_remote

_DRAIN = 1 << 22
OTHER_BYTES = "it was read twice, and held other bytes each time"


class FileBytes:
    """A file's own bytes.

    Args:
        file: as it was listed.
        hashed: hash what is read; it must then be read from beginning to end.
        pages: of a file that is read more than once: what is read must be what was read before.

    Attributes:
        raw: the file, for what reads at places of its own choice.

    Raises:
        DataError: it is not there any more, or another one is.
    """

    closed = False

    def __init__(self, file: CorpusFile, *, hashed: bool = False, pages: Pages | None = None) -> None:
        self._file = file
        try:
            self._own: Any = open_raw(file.location)
        except FileNotFoundError:
            raise changed(file, "it is gone") from None
        self.raw: Any = self._own if pages is None else PagedFile(self._own, pages, self._fail)
        self._hash = xxhash.xxh3_128() if hashed else None
        try:
            self.require_unchanged()
        except BaseException:
            self.raw.close()
            raise

    def read(self, size: int = -1, /) -> bytes:
        """Read the next bytes, at most `size`."""
        data: bytes = self.raw.read(size)
        if self._hash is not None:
            self._hash.update(data)
        return data

    def seek(self, offset: int, /) -> object:
        """Go to a place; not where the file is hashed."""
        assert self._hash is None
        return self.raw.seek(offset)

    def tell(self) -> int:
        """Return how far it was read."""
        position: int = self.raw.tell()
        return position

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
        if is_remote(self._file.location):
            place, name = in_store(self._file.location)
            now = (*(place.modified(name) or (0, 0)), 0)
        else:
            stat = os.fstat(self._own.fileno())
            now = (stat.st_size, stat.st_mtime_ns, stat.st_ino)
        listed = (self._file.bytes, self._file.modified, self._file.inode)
        if now != listed:
            what = f"it had {listed[0]:,} bytes and has {now[0]:,}" if now[0] != listed[0] else "it was written to"
            raise changed(self._file, "another file is in its place" if now[2] != listed[2] else what)

    def _fail(self) -> NoReturn:
        self.require_unchanged()
        raise changed(self._file, OTHER_BYTES)

    def close(self) -> None:
        """Close the file."""
        self.raw.close()


def changed(file: CorpusFile, what: str) -> DataError:
    """Return the error for a file that is being written to."""
    return DataError(
        "input-changed",
        f"changed while the command was at work: {what}",
        remedy="run the command again once nothing writes to the input",
        where=shown(file.location),
    )
