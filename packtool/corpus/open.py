"""Open files: local or object store, decompressed by what their first bytes say, never by name alone."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zlib
from typing import IO, Any, Protocol

from packtool.corpus.records import UnusableFileError
from packtool.errors import DataError

_MAGIC = {
    b"\x1f\x8b": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"BZh": "bz2",
    b"\xfd7zXZ\x00": "xz",
}
PARQUET_MAGIC = b"PAR1"
SUFFIXES = {".gz": "gzip", ".zst": "zstd", ".zstd": "zstd", ".bz2": "bz2", ".xz": "xz"}
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


class Readable(Protocol):
    """What readers need of a stream."""

    def read(self, size: int, /) -> bytes: ...

    def seek(self, offset: int, /) -> object: ...

    def close(self) -> None: ...


def sniff(head: bytes) -> str:
    """The compression that the first bytes of a file announce, or "".

    >>> sniff(b"\\x1f\\x8b\\x08"), sniff(b"{}")
    ('gzip', '')
    """
    for magic, name in _MAGIC.items():
        if head.startswith(magic):
            return name
    return "zstd" if _skippable_zstd(head) else ""


def _skippable_zstd(head: bytes) -> bool:
    return len(head) >= 4 and 0x50 <= head[0] <= 0x5F and head[1:4] == b"\x2a\x4d\x18"


def is_remote(location: str) -> bool:
    """Whether it is a URL of an object store rather than a local path.

    >>> is_remote("s3://bucket/a.jsonl"), is_remote("a.jsonl")
    (True, False)
    """
    scheme, separator, _ = location.partition("://")
    return bool(separator) and scheme.isalnum()


def filesystem(location: str) -> tuple[Any, str]:
    """The `pyarrow.fs` file system of a URL, and the path in it.

    Raises:
        DataError: no such file system, or its client is missing.
    """
    from pyarrow import fs

    try:
        store, path = fs.FileSystem.from_uri(location)
    except Exception as error:
        first = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
        raise DataError(
            "no-such-store",
            f"can't open this object store ({first})",
            remedy="check the URL, the credentials and the network; hf:// needs the package huggingface_hub",
            where=location,
        ) from None
    return store, str(path)


def open_raw(location: str) -> Any:
    """A file's own bytes, seekable."""
    if not is_remote(location):
        return io.FileIO(location)
    store, path = filesystem(location)
    return store.open_input_file(path)


def open_stream(location: str, compression: str) -> Any:
    """A file's bytes, decompressed. Streams of several members are read to their end.

    `read` raises UnusableFileError where the stream is damaged.
    """
    raw = open_raw(location)
    if compression == "gzip":
        return DecompressedStream(compression, gzip.GzipFile(fileobj=raw), raw)
    if compression == "bz2":
        return DecompressedStream(compression, bz2.BZ2File(raw), raw)
    if compression == "xz":
        return DecompressedStream(compression, lzma.LZMAFile(raw), raw)
    if compression == "zstd":
        import pyarrow as pa

        return DecompressedStream(compression, pa.CompressedInputStream(pa.PythonFile(raw, "r"), "zstd"), raw)
    return raw


class DecompressedStream:
    """A decompressing stream whose many kinds of complaint become one."""

    def __init__(self, kind: str, stream: Any, raw: IO[bytes]) -> None:
        self._kind = kind
        self._stream = stream
        self._raw = raw

    def read(self, size: int, /) -> bytes:
        try:
            data: bytes = self._stream.read(size)
        except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
            text = str(error).splitlines()[0].rstrip(".") if str(error) else type(error).__name__
            raise UnusableFileError("damaged-file", f"damaged {self._kind} stream: {text}") from None
        return data

    def seek(self, offset: int, /) -> object:
        raise io.UnsupportedOperation("compressed streams are read from start to end")

    def compressed_position(self) -> int:
        """How far the file itself was read."""
        position: int = self._raw.tell()
        return position

    def close(self) -> None:
        self._stream.close()
        self._raw.close()


def looks_like_utf16(head: bytes) -> bool:
    """Whether a file begins with a UTF-16 (or UTF-32) byte order mark."""
    return head.startswith(_UTF16)
