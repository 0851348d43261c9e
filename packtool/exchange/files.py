"""Write files of other formats: whole or absent, hashed on the way, or filled region by region."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import xxhash

from packtool.places.local import PARTIAL, sync_directory
from packtool.storage.files import HashedFile
from packtool.storage.schema import ExportedFile as Written

__all__ = ["ExportDirectory", "FileWriter", "Written", "as_stored", "digest"]


class FileWriter(HashedFile):
    """Writes a file, which is there once `finish` was called; it has the methods that libraries ask of a file."""

    closed = False

    def write(self, data: Any) -> int:
        """Append an array's elements, or bytes."""
        return self._put(data)

    def tell(self) -> int:
        return self._bytes

    def flush(self) -> None:
        """Do nothing: writes are not buffered here."""

    def close(self) -> None:
        """Do nothing: libraries call it, and `finish` finishes the file."""

    def finish(self, sequences: int = 0, tokens: int = 0) -> Written:
        """Make it durable under its name."""
        return Written(self.path.name, self._bytes, self._end(), sequences, tokens)


class ExportDirectory:
    """The directory that an export is written to.

    Args:
        path: directory for its files.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def create(self, name: str) -> FileWriter:
        """Create a file; it is removed if the block fails."""
        return FileWriter(self.path / name)

    def write_json(self, name: str, value: Any) -> Written:
        """Write a file that says something of the others."""
        with self.create(name) as out:
            out.write(msgspec.json.encode(value))
            return out.finish()

    def region(self, name: str, first: int) -> FileWriter:
        """Open a region, from byte `first`, of a file that several parts fill."""
        return FileWriter(self.path / name, first)

    def holds(self, written: Written, first: int | None) -> bool:
        """Return whether a finished file, or its region from byte `first`, is as it was written."""
        path = self.path / written.name if first is None else self._unfinished(written.name)
        try:
            if first is None and path.stat().st_size != written.bytes:
                return False
            return digest(path, first or 0, written.bytes) == written.xxh3_128
        except FileNotFoundError:
            return False

    def publish(self, name: str, written: list[Written]) -> Written:
        """Give a file that all parts have filled its final name."""
        path, unfinished = self.path / name, self._unfinished(name)
        if unfinished.exists() or not path.exists():
            unfinished.touch()  # there may have been no part
            unfinished.replace(path)
            sync_directory(self.path)
        sequences, tokens = (sum(getattr(region, each) for region in written) for each in ("sequences", "tokens"))
        size = path.stat().st_size
        return Written(name, size, digest(path, 0, size), sequences, tokens)

    def _unfinished(self, name: str) -> Path:
        return self.path / (name + PARTIAL)


def as_stored(tokens: npt.NDArray[Any], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Convert tokens to the type a format stores; every id fits, since formats check the vocabulary first."""
    return tokens.astype(dtype, copy=False)


def digest(path: Path, first: int, size: int) -> str:
    """Hash `size` bytes of a file from byte `first`: xxh3-128, hex."""
    hashed = xxhash.xxh3_128()
    with path.open("rb") as file:
        file.seek(first)
        while size > 0 and (block := file.read(min(size, 1 << 22))):
            hashed.update(block)
            size -= len(block)
    return hashed.hexdigest()
