"""Write files of other formats: whole or absent, hashed on the way, or filled region by region."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

import msgspec
import xxhash

from packtool.errors import DataError
from packtool.exchange.model import damaged
from packtool.formats.files import HashedFile
from packtool.formats.schema import ExportedFile
from packtool.places.local import PARTIAL, sync_directory
from packtool.support.decoding import from_json

Content = TypeVar("Content")


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

    def finish(self, sequences: int = 0, tokens: int = 0, directory: str = "") -> ExportedFile:
        """Make it durable under its name; in the export it lies in this directory, which ends with a slash."""
        return ExportedFile(directory + self.path.name, self._bytes, self._end(), sequences, tokens)


def write_json(path: Path, value: Any) -> ExportedFile:
    """Write a file that describes the others, such as an index."""
    with FileWriter(path) as out:
        out.write(msgspec.json.encode(value))
        return out.finish()


def read_json(path: Path, kind: type[Content]) -> Content:
    """Read a JSON file that describes the others, such as an index.

    Raises:
        DataError: missing, or not what it should be.
    """
    try:
        return from_json(path.read_text("utf-8"), kind)  # UTF-8 also in names that nobody reads
    except FileNotFoundError:
        raise missing(path) from None
    except ValueError as error:
        raise damaged(path, f"not as its format has it: {error}") from None


def named_file(directory: Path, name: str) -> Path:
    """Return a file of a directory that another file in it names.

    Raises:
        DataError: it is missing, or lies elsewhere: a file must not choose what else of this machine is read.
    """
    path = directory / name
    if "\0" in name or Path(name).is_absolute() or ".." in Path(name).parts:
        raise damaged(directory, f"a file of it is said to lie outside: {name}")
    if not path.is_file():
        raise missing(path)
    return path


def missing(path: Path) -> DataError:
    """Return the error for a file that others need."""
    what = "no such file, but another one names it"
    return DataError("missing-input", what, remedy="check the path, or copy it again", where=str(path))


def is_intact(directory: Path, file: ExportedFile, region: int) -> bool:
    """Return whether the region from a byte on of a file that is not finished is as it was written."""
    try:
        return digest(_unfinished(directory / file.name), region, file.bytes) == file.xxh3_128
    except FileNotFoundError:
        return False


def publish(path: Path, regions: list[ExportedFile]) -> ExportedFile:
    """Give a file that all parts have filled its final name."""
    unfinished = _unfinished(path)
    if unfinished.exists() or not path.exists():
        unfinished.touch()  # there may have been no part
        unfinished.replace(path)
        sync_directory(path.parent)
    size = path.stat().st_size
    sequences, tokens = sum(region.sequences for region in regions), sum(region.tokens for region in regions)
    return ExportedFile(path.name, size, digest(path, 0, size), sequences, tokens)


def _unfinished(path: Path) -> Path:
    return path.with_name(path.name + PARTIAL)


def digest(path: Path, first: int, size: int) -> str:
    """Hash `size` bytes of a file from byte `first`: xxh3-128, hex."""
    hashed = xxhash.xxh3_128()
    with path.open("rb") as file:
        file.seek(first)
        while size > 0 and (block := file.read(min(size, 1 << 22))):
            hashed.update(block)
            size -= len(block)
    return hashed.hexdigest()
