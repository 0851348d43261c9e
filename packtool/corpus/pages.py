"""Check that a file read more than once has the same bytes each time, page by page.

Files that several blocks share, and those whose readers go to places of their own choice, are read again for their
digest. Every page that was read is hashed, so the digest is known to be that of the bytes that were tokenized.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any, NoReturn, TypeAlias

import numpy as np
import xxhash

from packtool.corpus.records import read_up_to

PAGE = 1 << 18
"""Bytes of a page."""
Packed: TypeAlias = bytes
"""Numbers and hashes of pages, 12 bytes each."""
_SEEN = np.dtype([("page", "<u4"), ("hash", "<u8")])


class Pages:
    """The hash of every page of a file that was read so far.

    >>> pages = Pages()
    >>> pages.see(0, b"abc"), pages.see(0, b"abc"), pages.see(0, b"abd")
    (True, True, False)
    """

    def __init__(self) -> None:
        self._hashes: dict[int, int] = {}

    def see(self, page: int, data: bytes | memoryview) -> bool:
        """Record the content of a page; return whether it is unchanged."""
        digest = xxhash.xxh3_64_intdigest(data)
        return self._hashes.setdefault(page, digest) == digest

    def packed(self) -> Packed:
        """Pack all of it for `agree`."""
        seen = np.empty(len(self._hashes), _SEEN)
        seen["page"], seen["hash"] = list(self._hashes), np.array(list(self._hashes.values()), np.uint64)
        return seen.tobytes()


def agree(whole: Packed, parts: Packed) -> bool:
    """Return whether pages hold what the whole file held when it was read.

    Args:
        whole: packed pages of all of the file, in order.
        parts: packed pages of those that were read.
    """
    all_pages, some = np.frombuffer(whole, _SEEN), np.frombuffer(parts, _SEEN)
    if len(some) and int(some["page"].max()) >= len(all_pages):
        return False
    return bool((all_pages["hash"][some["page"]] == some["hash"]).all())


class PagedFile(io.RawIOBase):
    """A seekable file, of which only whole pages are read.

    Args:
        raw: the file.
        pages: takes note of them.
        on_change: called where a page is not what it was; it raises.
    """

    def __init__(self, raw: Any, pages: Pages, on_change: Callable[[], NoReturn]) -> None:
        super().__init__()
        self._raw = raw
        self._pages = pages
        self._on_change = on_change
        self._at = 0
        self._first = 0  # offset of what is held
        self._held = b""

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        self._at = offset if whence == io.SEEK_SET else self._raw.seek(0, whence) + offset
        return self._at

    def tell(self) -> int:
        return self._at

    def read(self, size: int = -1, /) -> bytes:
        if size < 0:
            size = max(self._raw.seek(0, io.SEEK_END) - self._at, 0)
        here = self._at - self._first
        if here < 0 or here + size > len(self._held):
            self._fill(size)
            here = self._at - self._first
        data = self._held[here : here + size]
        self._at += len(data)
        return data

    def _fill(self, size: int) -> None:
        """Load the pages around the next bytes."""
        first = self._at // PAGE
        last = -(-(self._at + size) // PAGE)
        self._raw.seek(first * PAGE)
        self._first, self._held = first * PAGE, read_up_to(self._raw, (last - first) * PAGE)
        view = memoryview(self._held)
        for number in range(-(-len(view) // PAGE)):
            if not self._pages.see(first + number, view[number * PAGE : (number + 1) * PAGE]):
                self._on_change()

    def close(self) -> None:
        super().close()
        self._raw.close()
