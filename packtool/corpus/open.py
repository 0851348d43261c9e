"""Open files, local or in an object store, and decompress them by their first bytes, never by name alone."""

from __future__ import annotations

import errno
import io
import os
from typing import Any, Protocol

import numpy as np

from packtool.corpus.decompress import Members
from packtool.corpus.records import UnusableFileError, in_words
from packtool.places.store import StorePlace
from packtool.places.url import is_remote, require_no_secret

_MAGIC = {
    b"\x1f\x8b": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"BZh": "bz2",
    b"\xfd7zXZ\x00": "xz",
}
PARQUET_MAGIC = b"PAR1"
SUFFIXES = {".gz": "gzip", ".zst": "zstd", ".zstd": "zstd", ".bz2": "bz2", ".xz": "xz"}
_STEP = 1 << 15
"""Bytes decompressed at once."""
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


class Readable(Protocol):
    """What readers need of a stream."""

    def read(self, size: int, /) -> bytes: ...

    def seek(self, offset: int, /) -> object: ...

    def close(self) -> None: ...


def sniff(head: bytes) -> str:
    """Return the compression that the first bytes of a file announce, or "".

    >>> sniff(b"\\x1f\\x8b\\x08"), sniff(b"{}")
    ('gzip', '')
    """
    for magic, name in _MAGIC.items():
        if head.startswith(magic):
            return name
    skippable = len(head) >= 4 and 0x50 <= head[0] <= 0x5F and head[1:4] == b"\x2a\x4d\x18"
    return "zstd" if skippable else ""


def open_raw(location: str) -> Any:
    """Open a file's own bytes, seekable."""
    if not is_remote(location):
        return io.FileIO(location)
    place, name = in_store(location)
    return StoreFile(place, name)


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


class StoreFile(io.RawIOBase):
    """A file of an object store, each read of which is a request.

    Args:
        place, name: of the file.

    Raises:
        FileNotFoundError: there is none.
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

    def read(self, size: int = -1, /) -> bytes:
        """Read as of any file; nothing at the end."""
        left = max(self._size - self._at, 0)
        count = left if size < 0 else min(size, left)
        if not count:
            return b""
        (data,) = self._place.ranges(self._name, np.array([self._at]), np.array([count]))
        self._at += count
        return bytes(data)

    def readinto(self, buffer: Any, /) -> int:
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


def open_stream(raw: Any, compression: str) -> Any:
    """Open a file's bytes, decompressed. Streams of several members are read to their end.

    `read` raises UnusableFileError where the stream is damaged.
    """
    if not compression:
        return raw
    return DecompressedStream(compression, Members(raw, compression), raw)


class DecompressedStream:
    """A decompressing stream whose many kinds of complaint become one, raised after all that came before the damage.

    What came before it is certain only where checksums cover it: up to the end of the last whole member.
    """

    def __init__(self, kind: str, source: Members, raw: Any) -> None:
        self._kind = kind
        self._source = source
        self._raw = raw
        self._damage: UnusableFileError | None = None

    def read(self, size: int, /) -> bytes:
        """Read at most `size` bytes; none at the end."""
        if self._damage is not None:
            raise self._damage
        parts: list[bytes] = []
        held = 0
        try:
            while held < size and (part := self._source.read(min(size - held, _STEP))):
                parts.append(part)
                held += len(part)
        except (OSError, EOFError) as error:
            self._damage = UnusableFileError("damaged-file", f"damaged {self._kind} stream: {in_words(error)}")
            if not held:
                raise self._damage from None
        return b"".join(parts)

    @property
    def whole(self) -> tuple[int, int]:
        """End of the last whole member: bytes of the file, and decompressed bytes."""
        return self._source.whole_in, self._source.whole_out

    def seek(self, offset: int, /) -> object:
        """Refuse to seek."""
        raise io.UnsupportedOperation("compressed streams are read from start to end")

    def close(self) -> None:
        """Close the file."""
        self.release()
        self._raw.close()

    def release(self) -> None:
        """Give back what decompression holds; the file stays open."""
        self._source.close()


def looks_like_utf16(head: bytes) -> bool:
    """Return whether a file begins with a UTF-16 (or UTF-32) byte order mark."""
    return head.startswith(_UTF16)
