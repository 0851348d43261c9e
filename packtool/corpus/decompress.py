"""Decompress member by member, strictly: only another member or padding may follow the last one.

The standard library's file classes take the end of a member for the end of the file when what follows is cut short or
damaged, and would lose it silently.
"""

from __future__ import annotations

import bz2
import lzma
import sys
import zlib
from collections.abc import Callable
from functools import partial
from typing import Any

_READ = 1 << 16
_XZ_MEMORY = 1 << 29
"""An xz file names the size of its dictionary, up to 4 GiB; the highest preset of xz takes 65 MiB."""


class Members:
    """gzip, bz2, xz or zstd, in any number of members, which zstd calls frames.

    Args:
        raw: the file.
        kind: gzip, bz2, xz or zstd.

    Attributes:
        whole_in: bytes of the file up to the end of the last whole member.
        whole_out: what they decompress to, in bytes.
    """

    def __init__(self, raw: Any, kind: str) -> None:
        self._raw = raw
        self._make, self._error = _tools(kind)
        self._padded = kind in ("gzip", "xz")
        self._waiting = b""
        self._member: Any = None
        self._in = self._out = 0
        self.whole_in = self.whole_out = 0

    def read(self, size: int) -> bytes:
        """Read at most `size` bytes; none at the end.

        Raises:
            EOFError, OSError: damaged.
        """
        while True:
            if self._member is None and not self._begin():
                return b""
            data = b""
            if self._member.needs_input:
                data, self._waiting = self._waiting or self._take(), b""
                if not data:
                    raise EOFError("it ends too early")
            try:
                out: bytes = self._member.decompress(data, size)
            except self._error as error:
                raise OSError(str(error)) from None
            self._out += len(out)
            if self._member.eof:
                self._waiting = self._member.unused_data
                self._member = None
                self.whole_in, self.whole_out = self._in - len(self._waiting), self._out
            if out:
                return out

    def _begin(self) -> bool:
        """Start the next member; whether there is one."""
        while True:
            data = self._waiting or self._take()
            # gzip and xz files may be padded with zeros to whole blocks.
            self._waiting = data.lstrip(b"\0") if self._padded else data
            if self._waiting or not data:
                break
        if self._waiting:
            self._member = self._make()
        else:
            self.whole_in = self._in
        return bool(self._waiting)

    def close(self) -> None:
        """Give back the memory of the current member."""
        self._member = None

    def _take(self) -> bytes:
        data: bytes = self._raw.read(_READ)
        self._in += len(data)
        return data


class _Gzip:
    """zlib's decompressor with the manners of those of bz2 and lzma."""

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


def _tools(kind: str) -> tuple[Callable[[], Any], type[Exception]]:
    """Return a factory for decompressors of one member, and the errors they raise."""
    if kind != "zstd":
        return _TOOLS[kind]
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd

    return zstd.ZstdDecompressor, zstd.ZstdError


_TOOLS: dict[str, tuple[Callable[[], Any], type[Exception]]] = {
    "gzip": (_Gzip, zlib.error),
    "bz2": (bz2.BZ2Decompressor, OSError),
    "xz": (partial(lzma.LZMADecompressor, memlimit=_XZ_MEMORY), lzma.LZMAError),
}
