"""Read JSON from outside, files of a directory, and arrays whose checksums are to be verified."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec
import numpy as np
import xxhash

from packtool.places.npy import FileEntry, npy_header
from packtool.places.place import Place

_Content = TypeVar("_Content")


def decode(raw: bytes, kind: type[_Content]) -> _Content:
    """Decode a value from JSON.

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


@dataclass(frozen=True)
class MappedFile:
    """An array that was opened, and the file that it must be.

    Attributes:
        place, entry: where the file lies, and what its manifest says of it.
        array: mapped, with the header that the manifest promises.
    """

    place: Place
    entry: FileEntry
    array: np.ndarray[Any, Any]

    def __reduce__(self) -> tuple[Any, ...]:
        return _map_again, (self.place, self.entry, self.array.dtype)

    def hash_of_header(self) -> xxhash.xxh3_128:
        """Start a hash with the file's header, to go on with its `bytes`."""
        return xxhash.xxh3_128(npy_header(self.array.dtype, self.array.shape))

    def bytes(self) -> memoryview:
        """Return what follows the header."""
        return self.array.reshape(-1).view(np.uint8).data

    def require(self, digest: str) -> None:
        """Compare a checksum with the manifest's.

        Raises:
            DataError: they differ.
        """
        if digest != self.entry.xxh3_128:
            raise self.place.changed(self.entry.name)


def _map_again(place: Place, entry: FileEntry, dtype: np.dtype[Any]) -> MappedFile:
    """Map the same file again, in another process."""
    return MappedFile(place, entry, place.array(entry, dtype))
