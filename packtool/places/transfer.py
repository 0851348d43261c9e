"""Bytes to an object store and back: whole objects up, ranges down, each attempt repeated where that may help."""

from __future__ import annotations

import ctypes
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path, PurePosixPath
from threading import Event
from typing import Any

import xxhash

from packtool.errors import DataError
from packtool.places.client import filesystem, patiently

PART_BYTES = 1 << 23
"""What is sent or fetched by one request."""
AHEAD = 4
"""Parts of one object that are fetched at once."""
COPY_BYTES = 5 << 30
"""The largest object that stores copy by one request."""


class StoppedError(Exception):
    """The transfer was given up."""


def upload(file: Path, url: str, stop: Event, xxh3_128: str | None = None) -> None:
    """Put a local file into a store, as a whole or not at all.

    Args:
        file: that nobody writes to.
        url: of the object; what it held before stays until all of the file is there.
        stop: when set, the upload is given up.
        xxh3_128: of the file, as it was written; None to send what is there.

    Raises:
        DataError: the store refuses it; the file has changed.
        StoppedError: it was given up.
    """
    store, path = filesystem(url)
    patiently(lambda: _put(_blocks(file, url, stop, xxh3_128), store, path), url)
    if (found := size_of(url)) != file.stat().st_size:
        what = f"has {found} bytes in the store, but {file.stat().st_size} were sent"
        raise DataError("store-unreachable", what, remedy="run the command again with --resume", where=url)


def write(url: str, data: bytes) -> None:
    """Make a small object.

    Raises:
        DataError: the store refuses it.
    """
    store, path = filesystem(url)
    patiently(lambda: _put([data], store, path), url)


def copy(source: str, target: str, size: int) -> None:
    """Make an object that is the same as another one of the same store, whose bytes stay there unless they are many.

    Raises:
        FileNotFoundError: there is no such object.
        DataError: the store refuses it.
    """
    store, path = filesystem(target)
    if size > COPY_BYTES:
        patiently(lambda: _put(download(source, size), store, path), target)
    else:
        patiently(lambda: store.copy_file(filesystem(source)[1], path), target)


def _blocks(file: Path, url: str, stop: Event, xxh3_128: str | None) -> Iterator[bytes]:
    """What a file holds, held against its checksum before the last of it is given."""
    hashed, last = xxhash.xxh3_128(), b""
    with file.open("rb") as source:
        while block := source.read(PART_BYTES):
            if stop.is_set():
                raise StoppedError
            hashed.update(block)
            if last:
                yield last
            last = block
    if xxh3_128 is not None and hashed.hexdigest() != xxh3_128:
        what = "its checksum differs from when it was written: the file has changed on the disk"
        raise DataError("wrong-checksum", what, remedy="check the disk, then run the command again", where=url)
    yield last


def _put(blocks: Iterable[bytes], store: Any, path: str) -> None:
    stream = store.open_output_stream(path, compression=None)
    try:
        for block in blocks:
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


def remove_below(url: str) -> None:
    """Remove every object below a URL; nothing happens where there is none."""
    store, path = filesystem(url)
    try:
        patiently(lambda: store.delete_dir(path), url)
    except FileNotFoundError:
        return
