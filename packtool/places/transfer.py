"""Bytes to an object store and back: whole objects up, ranges down, each attempt repeated where that may help."""

from __future__ import annotations

import ctypes
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path, PurePosixPath
from threading import Event
from typing import Any

from packtool.errors import DataError
from packtool.places.client import filesystem, patiently

PART_BYTES = 1 << 23
"""What is sent or fetched by one request."""
AHEAD = 4
"""Parts of one object that are fetched at once."""


class StoppedError(Exception):
    """The transfer was given up."""


def upload(file: Path, url: str, stop: Event) -> None:
    """Put a local file into a store, as a whole or not at all.

    Args:
        file: that nobody writes to.
        url: of the object; what it held before stays until all of the file is there.
        stop: when set, the upload is given up.

    Raises:
        DataError: the store refuses it.
        StoppedError: it was given up.
    """
    store, path = filesystem(url)
    patiently(lambda: _put(file, store, path, stop), url)
    if (found := size_of(url)) != file.stat().st_size:
        what = f"has {found} bytes in the store, but {file.stat().st_size} were sent"
        raise DataError("store-unreachable", what, remedy="run the command again with --resume", where=url)


def _put(file: Path, store: Any, path: str, stop: Event) -> None:
    stream = store.open_output_stream(path, compression=None)
    try:
        with file.open("rb") as source:
            while block := source.read(PART_BYTES):
                if stop.is_set():
                    raise StoppedError
                stream.write(block)
        stream.close()
    except BaseException:
        # The client completes the upload of what was written so far when a stream goes, unless it never goes.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(stream))
        raise


def download(url: str, size: int) -> Iterator[bytes]:
    """An object's bytes, part by part, some of them ahead.

    Raises:
        FileNotFoundError: there is none.
        DataError: the store refuses it.
    """
    with ThreadPoolExecutor(AHEAD) as pool:
        waiting: deque[Future[bytes]] = deque()
        try:
            for first in range(0, size, PART_BYTES):
                waiting.append(pool.submit(read, url, first, min(PART_BYTES, size - first)))
                if len(waiting) > AHEAD:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for each in waiting:
                each.cancel()


def read(url: str, first: int = 0, count: int | None = None) -> bytes:
    """A range of an object's bytes; to its end without a count.

    Raises:
        FileNotFoundError: there is none.
        DataError: the store refuses it.
    """
    store, path = filesystem(url)

    def fetch() -> bytes:
        with store.open_input_file(path) as file:
            data: bytes = file.read_at(file.size() - first if count is None else count, first)
            if count is not None and len(data) != count and file.size() >= first + count:
                raise OSError("fewer bytes than asked for")
            return data

    return patiently(fetch, url)


def size_of(url: str) -> int | None:
    """Bytes of an object; None where there is none."""
    from pyarrow import fs

    store, path = filesystem(url)
    info = patiently(lambda: store.get_file_info(path), url)
    return int(info.size) if info.type == fs.FileType.File else None


def names_below(url: str) -> dict[str, int]:
    """Every object below a URL, by its name relative to it, with its bytes."""
    from pyarrow import fs

    store, path = filesystem(url)
    selector = fs.FileSelector(path, recursive=True, allow_not_found=True)
    found = patiently(lambda: store.get_file_info(selector), url)
    files = [each for each in found if each.type == fs.FileType.File]
    return {str(PurePosixPath(each.path).relative_to(path)): int(each.size) for each in files}


def remove(url: str) -> None:
    """Remove an object; nothing happens where there is none."""
    store, path = filesystem(url)
    try:
        patiently(lambda: store.delete_file(path), url)
    except FileNotFoundError:
        return
