"""zstd frame by frame, so that it is known where the last whole frame ends.

Arrow decompresses; it reads ahead, over the end of a frame, and forgets what came out before it meets damage.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from packtool.corpus.records import read_up_to

_MAGIC = b"\x28\xb5\x2f\xfd"
_RLE, _RESERVED = 1, 3


class Zstd:
    """zstd, in any number of frames.

    Args:
        raw: the file.

    Attributes:
        whole_in: bytes of the file up to the end of the last whole frame.
        whole_out: what they decompress to, in bytes.
    """

    def __init__(self, raw: Any) -> None:
        self._file = _File(raw)
        self._frame: _Frame | None = None
        self._stream: Any = None
        self._out = 0
        self.whole_in = 0
        self.whole_out = 0

    def read(self, size: int) -> bytes:
        """Read at most `size` bytes; none at the end.

        Raises:
            EOFError, OSError: damaged.
        """
        while True:
            if self._frame is None and not self._begin():
                return b""
            assert self._frame is not None
            data: bytes = self._stream.read(size)
            self._out += len(data)
            if data:
                return data
            self._frame.require_end()
            self.close()
            self.whole_in, self.whole_out = self._file.position, self._out

    def _begin(self) -> bool:
        """Start the next frame; whether there is one. Skippable frames are skipped."""
        import pyarrow as pa

        while True:
            magic = self._file.take(4, may_end=True)
            if not magic:
                self.whole_in = self._file.position
                return False
            if magic == _MAGIC:
                break
            if magic[1:] != b"\x2a\x4d\x18" or not 0x50 <= magic[0] <= 0x5F:
                raise OSError("what follows the last frame is not another one")
            left = int.from_bytes(self._file.take(4), "little")
            while left:
                left -= len(self._file.take(min(left, 1 << 20)))
        self._frame = _Frame(self._file.take)
        self._stream = pa.CompressedInputStream(pa.PythonFile(self._frame, "r"), "zstd")
        return True

    def close(self) -> None:
        """Give back the memory of the current frame."""
        if self._stream is not None:
            self._stream.close()
        self._frame = self._stream = None


class _File:
    """The file, and how far it was read."""

    def __init__(self, raw: Any) -> None:
        self._raw = raw
        self.position = 0

    def take(self, size: int, *, may_end: bool = False) -> bytes:
        """Read exactly `size` bytes."""
        data = read_up_to(self._raw, size)
        self.position += len(data)
        if len(data) < size and not (may_end and not data):
            raise EOFError("it ends too early")
        return data


class _Frame:
    """The bytes of one frame as a file: headers tell where it ends."""

    closed = False

    def __init__(self, take: Callable[[int], bytes]) -> None:
        self._take = take
        descriptor = take(1)
        flags = descriptor[0]
        single = flags >> 5 & 1
        size = (0 if single else 1) + (0, 1, 2, 4)[flags & 3] + (single, 2, 4, 8)[flags >> 6]
        self._checksum = 4 if flags & 4 else 0
        self._ready = _MAGIC + descriptor + take(size)
        self._left = 0  # bytes of the current block still to be taken
        self._last = False
        self._ended = False

    def read(self, size: int = -1) -> bytes:
        """Read some of the next bytes, at most `size`; none at the end of the frame."""
        while not self._ready and not self._ended:
            if self._left:
                self._ready = self._take(min(self._left, 1 << 16))
                self._left -= len(self._ready)
            elif self._last:
                self._ready = self._take(self._checksum)
                self._ended = True
            else:
                self._ready = self._block()
        out, self._ready = self._ready[:size], self._ready[size:]
        return out

    def _block(self) -> bytes:
        header = self._take(3)
        value = int.from_bytes(header, "little")
        kind = value >> 1 & 3
        if kind == _RESERVED:
            raise OSError("a block of an unknown kind")
        self._last = bool(value & 1)
        self._left = 1 if kind == _RLE else value >> 3
        return header

    def require_end(self) -> None:
        """Require the frame to end where the decompressor is done."""
        if not (self._ended and not self._ready):
            raise OSError("a frame that goes on after its end")

    def close(self) -> None:
        """Leave the file open: it belongs to the reader."""
