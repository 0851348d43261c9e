"""Decompress streams, recognised by their first bytes, member by member and strictly.

Only another member or padding may follow the last one. The standard library's file classes take the end of a member for
the end of the file when what follows is cut short or damaged, and would lose it silently.
"""

from __future__ import annotations

import bz2
import lzma
import sys
import zlib
from collections.abc import Callable
from functools import partial
from typing import Any

from packtool.text.corpus.records import in_words
from packtool.text.faults import Fault

SUFFIXES = frozenset({".gz", ".zst", ".zstd", ".bz2", ".xz"})
_MAGIC = {
    b"\x1f\x8b": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"BZh": "bz2",
    b"\xfd7zXZ\x00": "xz",
}
_READ = 1 << 16
_LEAST = 1 << 8
"""Bytes that a decompressor gets at least."""
_AHEAD = 1 << 18
"""Bytes, decompressed, that it may be ahead of what is read."""
_CHUNK = 1 << 20
_STEP = 1 << 15
"""Bytes decompressed at once."""
_XZ_MEMORY = 1 << 29
"""An xz file names the size of its dictionary, up to 4 GiB; the highest preset of xz takes 65 MiB."""


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


class DecompressedStream:
    """The bytes of a gzip, bz2, xz or zstd file, which may have several members (zstd calls them frames).

    Checksums stand at the end of a member: what was read of one before its damage shows may be damaged, too.

    Args:
        raw: the file.
        kind: gzip, bz2, xz or zstd.
    """

    def __init__(self, raw: Any, kind: str) -> None:
        self._raw = raw
        self._kind = kind
        self._make, self._error = _tools(kind)
        self._padded = kind in ("gzip", "xz")
        self._waiting = b""
        self._at_once = _LEAST
        self._given = self._fetched = 0
        self._member: Any = None
        self._damage: Fault | None = None

    def read(self, size: int, /) -> bytes:
        """Read at most `size` bytes; no bytes at the end. `read_whole` reads all.

        Raises:
            Fault: damaged. All that came before the damage is given first.
        """
        if self._damage is not None:
            raise self._damage
        parts: list[bytes] = []
        held = 0
        try:
            while held < size:
                part = self._next(min(size - held, _STEP))
                if not part:
                    break
                parts.append(part)
                held += len(part)
        except (OSError, EOFError, self._error) as error:
            what = f"damaged {self._kind} stream: {in_words(error)}; what follows is lost"
            self._damage = Fault("damaged-file", what)
            if not held:
                raise self._damage from None
        return b"".join(parts)

    def _next(self, size: int) -> bytes:
        """Decompress a little; nothing at the end."""
        while True:
            if self._member is None and not self._begin():
                return b""
            data = b""
            if self._member.needs_input:
                data = self._piece()
                if not data:
                    raise EOFError("it ends too early")
            out: bytes = self._member.decompress(data, size)
            self._given += len(out)
            if self._member.eof:
                self._waiting = self._member.unused_data + self._waiting
                self._member = None
            if out:
                return out

    def _begin(self) -> bool:
        """Start the next member; return whether there is one."""
        while True:
            data = self._waiting or self._fetch()
            # gzip and xz files may be padded with zeros to whole blocks.
            self._waiting = data.lstrip(b"\0") if self._padded else data
            if self._waiting or not data:
                break
        if self._waiting:
            self._member = self._make()
        return bool(self._waiting)

    def _fetch(self) -> bytes:
        data: bytes = self._raw.read(_READ)
        self._fetched += len(data)
        return data

    def _piece(self) -> bytes:
        """Return what the decompressor gets next: as much as gives about `_AHEAD` bytes, by what the last piece gave.

        All that it gets counts as read: of a file that is a thousandth of its text, that would be much too much.
        """
        if self._given > _AHEAD:
            self._at_once = max(self._at_once // 2, _LEAST)
        elif self._given < _AHEAD // 4:
            self._at_once = min(self._at_once * 2, _READ)
        self._given = 0
        self._waiting = self._waiting or self._fetch()
        piece, self._waiting = self._waiting[: self._at_once], self._waiting[self._at_once :]
        return piece

    @property
    def consumed(self) -> int:
        """Bytes of the file whose text was read, about."""
        return self._fetched - len(self._waiting)

    def close(self) -> None:
        self._raw.close()


def open_stream(raw: Any, compression: str) -> Any:
    """Open a file's bytes, decompressed."""
    return DecompressedStream(raw, compression) if compression else raw


def read_whole(stream: Any, limit: int | None = None) -> bytes | None:
    """Read a stream to its very end, where the checksums are; return None if it has more bytes than the limit.

    A single `read` may give all the bytes of a damaged stream: what is wrong is only raised by the next one.

    >>> import io
    >>> read_whole(io.BytesIO(b"abc")), read_whole(io.BytesIO(b"abc"), limit=2)
    (b'abc', None)
    """
    parts, held = [], 0
    while part := stream.read(_CHUNK):
        held += len(part)
        if limit is not None and held > limit:
            return None
        parts.append(part)
    return b"".join(parts)


def _tools(kind: str) -> tuple[Callable[[], Any], type[Exception]]:
    """Return a factory for decompressors of one member, and the errors they raise."""
    if kind == "gzip":
        return _Gzip, zlib.error
    if kind == "bz2":
        return bz2.BZ2Decompressor, OSError
    if kind == "xz":
        return partial(lzma.LZMADecompressor, memlimit=_XZ_MEMORY), lzma.LZMAError
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd

    return zstd.ZstdDecompressor, zstd.ZstdError


class _Gzip:
    """zlib's decompressor with the interface of bz2's and lzma's."""

    def __init__(self) -> None:
        self._zlib = zlib.decompressobj(zlib.MAX_WBITS | 16)
        self._full = False

    @property
    def needs_input(self) -> bool:
        return not self._zlib.unconsumed_tail and not self._full

    @property
    def eof(self) -> bool:
        return self._zlib.eof

    @property
    def unused_data(self) -> bytes:
        return self._zlib.unused_data

    def decompress(self, data: bytes, size: int) -> bytes:
        out = self._zlib.decompress(self._zlib.unconsumed_tail + data, size)
        self._full = len(out) == size  # there may be more to come without input
        return out
