"""Cache files of object stores on a local disk, when they are first read and while there is room."""

from __future__ import annotations

import fcntl
import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event
from typing import Any, BinaryIO

import numpy as np

from packtool.errors import DataError
from packtool.places.local import PARTIAL, READING, LocalPlace, locked, map_array, remove_tree
from packtool.places.npy import FileEntry
from packtool.places.place import Array, Entry, Place
from packtool.places.store import StorePlace
from packtool.support.progress import Progress
from packtool.support.sizes import show_bytes
from packtool.support.temporary import directory_of

FILES_AT_ONCE = 3
MAPPED = 12
"""Arrays that a reader keeps open where the cache is limited: a removed copy takes room until it is closed."""
_WAIT = 0.02  # seconds between looks at room that other processes are filling


class Cache:
    """A directory of copies, each named by its checksum: an object that changes in the store is another file here.

    Threads and processes share it, and each file is fetched by one of them. When `limit` is reached, the files used
    longest ago go. A reader that has mapped such a file keeps it until it is done. Files that are being fetched count.

    Args:
        directory: made when it is needed; None for a temporary one in each process that reads.
        limit: bytes that are kept; None for all.
        run: names the temporary directory, until `forget`.
    """

    def __init__(self, directory: Path | None, limit: int | None = None, run: str = "") -> None:
        self.limit = limit
        self.run = run
        self._directory = None if directory is None else directory.absolute()

    def __reduce__(self) -> tuple[Any, ...]:
        return Cache, (None if self.run else self._directory, self.limit, self.run)

    @property
    def directory(self) -> Path:
        """Where copies lie."""
        if self._directory is None:
            self._directory = directory_of(self.run)
        self._directory.mkdir(parents=True, exist_ok=True)
        return self._directory

    def fetch(self, place: Place, entry: Entry, stop: Event | None = None) -> Path:
        """Return the copy of a file, after making it if need be. Errors as of `Place.checked`."""

        def fill(out: BinaryIO) -> None:
            try:
                digest = place.digest(entry.name, out, stop)
            except FileNotFoundError:
                raise place.missing(entry.name) from None
            if digest != entry.xxh3_128:
                raise place.changed(entry.name)

        def size() -> int:
            place.require_size(entry, place.size(entry.name))
            return entry.bytes

        return self.made(entry.xxh3_128, size, fill)

    def made(self, name: str, size: Callable[[], int], fill: Callable[[BinaryIO], None]) -> Path:
        """Return the file of a name, after making it if need be: one thread or process makes it, others wait for it.

        Args:
            size: returns the bytes of the file, which are made room for.
            fill: writes these bytes.
        """
        file = self.directory / name
        with suppress(FileNotFoundError):
            os.utime(file)
            return file
        with locked(self.directory / f"{name}.lock"):
            if not file.exists():
                with self._room(file.with_name(file.name + PARTIAL), size()) as partial:
                    with partial.open("r+b") as out:
                        fill(out)
                    partial.replace(file)  # before its lock is released, or it would look abandoned
        return file

    @contextmanager
    def _room(self, partial: Path, size: int) -> Iterator[Path]:
        """Make a file of this size, locked while it is filled; remove others until it fits, or wait for files that
        other threads and processes are filling."""
        handle = -1
        try:
            while handle < 0:
                with locked(self.directory / ".room"):
                    # The file is locked before `.room` is released: another process, which holds `.room` when it looks
                    # for abandoned files, never finds this one unlocked.
                    if self._make_room(size):
                        handle = os.open(partial, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
                        fcntl.flock(handle, fcntl.LOCK_EX)
                        os.truncate(handle, size)  # takes no room yet, but is counted by all
                if handle < 0:
                    time.sleep(_WAIT)
            yield partial
        finally:
            if handle >= 0:
                partial.unlink(missing_ok=True)
                os.close(handle)

    def _make_room(self, size: int) -> bool:
        """Free space in the cache; return whether this many bytes fit now. A file above the limit waits to be alone."""
        kept, coming = [], 0
        for file in self.directory.iterdir():
            with suppress(FileNotFoundError):
                about = file.stat()
                if file.suffix == PARTIAL:
                    coming += 0 if _abandoned(file) else about.st_size
                elif not file.suffix and not file.name.startswith("."):
                    kept.append((about.st_mtime_ns, about.st_size, file))
        if self.limit is None:
            return True
        if coming and coming + size > self.limit:
            return False
        total = coming + sum(each for _, each, _ in kept)
        for _, each, file in sorted(kept):
            if total + size <= self.limit:
                break
            file.unlink(missing_ok=True)
            total -= each
        return True

    def recheck(self) -> None:
        """Remove copies that an earlier run left, unless they are what their names say."""
        there = [file for file in self.directory.iterdir() if not file.suffix and not file.name.startswith(".")]
        with ThreadPoolExecutor(FILES_AT_ONCE) as pool:
            digests = pool.map(LocalPlace(self.directory).digest, [file.name for file in there])
            for file, digest in zip(there, digests, strict=True):
                if digest != file.name:
                    file.unlink()

    def remove(self) -> None:
        """Remove the directory, and its parents as far as they are empty then."""
        if self._directory is not None:
            remove_tree(self._directory)


def _abandoned(partial: Path) -> bool:
    """Remove a partial file whose process is gone; return whether it was."""
    handle = os.open(partial, os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    else:
        partial.unlink(missing_ok=True)
        return True
    finally:
        os.close(handle)


class CachedPlace(StorePlace):
    """A place in a store whose arrays are copied to a local disk when they are first read, and checked by checksums.

    Args:
        place: in the store.
        cache: where copies go.
        ranged: kinds of arrays that are read by ranges, such as ``tokens``, and never copied.
    """

    sound = True

    def __init__(self, place: StorePlace, cache: Cache, ranged: Sequence[str] = ()) -> None:
        super().__init__(place.url)
        self.cache = cache
        self.ranged = ranged
        self.arrays = None if cache.limit is None else MAPPED
        self.late = bool(ranged)

    def __reduce__(self) -> tuple[Any, ...]:
        return CachedPlace, (StorePlace(self.url), self.cache, tuple(self.ranged))

    def below(self, name: str) -> CachedPlace:
        return CachedPlace(super().below(name), self.cache, self.ranged) if name else self

    def array(self, entry: FileEntry, dtype: np.dtype[Any] | str) -> Array:
        if self._is_ranged(entry.name):
            return super().array(entry, dtype)
        while True:
            file = self.cache.fetch(self, entry)
            with suppress(FileNotFoundError):  # it was removed in the meantime to make room
                return map_array(os.open(file, READING), entry, dtype, self)

    def problem(self, entry: Entry) -> DataError | None:
        if not entry.name.endswith(".npy") or self._is_ranged(entry.name):
            return super().problem(entry)
        try:
            self.cache.fetch(self, entry)
        except DataError as error:
            return error
        return None

    def _is_ranged(self, name: str) -> bool:
        return name.rpartition("/")[2].partition("-")[0] in self.ranged


def fetch_all(wanted: Sequence[tuple[CachedPlace, Entry]], *, quiet: bool) -> None:
    """Fetch files ahead, several at once, if there is room for all. Errors as of `Cache.fetch`."""
    wanted = [(place, entry) for place, entry in wanted if not (place.cache.directory / entry.xxh3_128).exists()]
    if not wanted:
        return
    total = sum(entry.bytes for _, entry in wanted)
    directory = wanted[0][0].cache.directory
    free = shutil.disk_usage(directory).free
    if free < total:
        what = f"{show_bytes(total)} are to be fetched, but only {show_bytes(free)} are free"
        remedy = "give --staging with a directory that has room"
        raise DataError("disk-full", what, remedy=remedy, where=str(directory))
    stop = Event()
    with Progress(total, "fetch", quiet=quiet) as bar, ThreadPoolExecutor(FILES_AT_ONCE) as pool:
        coming = [(entry, pool.submit(place.cache.fetch, place, entry, stop)) for place, entry in wanted]
        try:
            for entry, fetched in coming:
                fetched.result()
                bar.advance(entry.bytes)
        except BaseException:
            stop.set()
            pool.shutdown(cancel_futures=True)
            raise


def copied(place: Place, cache: Cache) -> Place:
    """Return a place in a store with copies of its arrays in a cache; any other place as it is."""
    if isinstance(place, StorePlace):
        return CachedPlace(place, cache)
    return place
