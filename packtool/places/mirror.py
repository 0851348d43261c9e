"""Mirrors: local directories that stand for datasets in an object store.

What opens files asks `fetch` for one that is not there. A file appears under its name when all of it is there and has
the checksum that the manifest says. Several processes may share a mirror; each file is fetched by one of them.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from threading import Event

import xxhash

from packtool.errors import DataError, names
from packtool.places import transfer
from packtool.places.quota import Quota
from packtool.progress import Progress

FETCHING = ".fetching"
"""Directory for locks, and for files of which only a part is there."""
FILES_AT_ONCE = 3

_mirrors: dict[str, Mirror] = {}


class Mirror:
    """A directory whose files are those of a dataset in a store, as far as they were needed.

    Args:
        url: of the dataset.
        path: of the directory, absolute; created.
        quota: room for arrays, beside those that are being read; None for all.
        quiet: no progress bar.
        ranged: kinds of arrays that are read by ranges, such as ``tokens``, and never fetched.
        sizes: of every object below the URL, by name, if that is known.

    Attributes:
        sizes: of every object below the URL, by name.
        quota, ranged: as given.
    """

    def __init__(
        self,
        url: str,
        path: Path,
        quota: Quota | None = None,
        *,
        quiet: bool = True,
        ranged: Sequence[str] = (),
        sizes: dict[str, int] | None = None,
    ) -> None:
        self.url = url
        self.path = path
        self.sizes: dict[str, int] = transfer.names_below(url) if sizes is None else sizes
        self.quota = quota
        self.ranged = frozenset(ranged)
        self._quiet = quiet
        self._digests: Mapping[str, tuple[int, str]] = {}
        self._fetching = path.parent / FETCHING
        path.mkdir(parents=True, exist_ok=True)
        self._fetching.mkdir(exist_ok=True)
        names[str(path)] = url

    def url_of(self, name: str) -> str:
        """Where a file comes from."""
        return f"{self.url}/{name}"

    def expect(self, digests: Mapping[str, tuple[int, str]]) -> None:
        """From now on hold files against these sizes and checksums, and have those of them that are missing fetched."""
        self._digests = digests
        _mirrors[str(self.path)] = self
        if self.quota is not None:
            self.quota.add(self)

    def keep_within(self, quota: Quota) -> None:
        """From now on keep no more than there is room for."""
        self.quota = quota
        quota.add(self)

    def fetchable(self) -> Mapping[str, int]:
        """Names and bytes of the files that are expected."""
        return {name: size for name, (size, _) in self._digests.items()}

    def recheck(self) -> None:
        """Remove what an earlier run left here, unless it has the checksum that the manifest says."""
        there = [name for name in self._digests if (self.path / name).exists()]
        with ThreadPoolExecutor(FILES_AT_ONCE) as pool:
            for name, digest in zip(there, pool.map(self._hash, there), strict=True):
                if digest != self._digests[name][1]:
                    (self.path / name).unlink()

    def _hash(self, name: str) -> str:
        hashed = xxhash.xxh3_128()
        with (self.path / name).open("rb") as file:
            while block := file.read(1 << 22):
                hashed.update(block)
        return hashed.hexdigest()

    def fetch(self, name: str) -> None:
        """Have a file here.

        Raises:
            FileNotFoundError: it is not in the store.
            DataError: it is not what the manifest says; the store refuses it.
        """
        self._fetch(name, Event())

    def fetch_all(self) -> None:
        """Have every file here that is expected.

        Raises:
            DataError: one is missing, or not what the manifest says; the store refuses it.
        """
        wanted = [name for name in self._digests if not (self.path / name).exists()]
        _require_room(self.path, sum(self._digests[name][0] for name in wanted))
        stop = Event()
        with (
            Progress(sum(self._digests[name][0] for name in wanted), "fetch", quiet=self._quiet) as bar,
            ThreadPoolExecutor(FILES_AT_ONCE) as pool,
        ):
            try:
                for name, fetched in [(name, pool.submit(self._fetch, name, stop)) for name in wanted]:
                    fetched.result()
                    bar.advance(self._digests[name][0])
            except BaseException as error:
                stop.set()
                pool.shutdown(cancel_futures=True)
                if isinstance(error, FileNotFoundError):
                    raise _missing(self.url_of(name)) from None
                raise

    def _fetch(self, name: str, stop: Event) -> None:
        file = self.path / name
        with self._one(name):
            if file.exists():
                return
            size, digest = self._digests.get(name, (self.sizes.get(name), None))
            found = self.sizes.get(name)
            if size is None or found is None or ".." in Path(name).parts:
                raise FileNotFoundError(file)
            if found != size:
                what = f"has {found} bytes, but the manifest says {size}"
                raise DataError("wrong-size", what, remedy=_AGAIN, where=self.url_of(name))
            with nullcontext() if self.quota is None else self.quota.room_for(name, size):
                self._download(name, size, digest, stop)

    def _download(self, name: str, size: int, digest: str | None, stop: Event) -> None:
        """Have a file here, under its name when it has been held against its checksum."""
        file, partial = self.path / name, self._fetching / _flat(name)
        hashed = xxhash.xxh3_128()
        with partial.open("wb") as out:
            for block in transfer.download(self.url_of(name), size):
                if stop.is_set():
                    raise transfer.StoppedError
                hashed.update(block)
                out.write(block)
        if digest is not None and hashed.hexdigest() != digest:
            partial.unlink()
            what = "its checksum differs from the manifest's: the file has changed since it was written"
            raise DataError("wrong-checksum", what, remedy=_AGAIN, where=self.url_of(name))
        file.parent.mkdir(parents=True, exist_ok=True)
        partial.replace(file)

    @contextmanager
    def _one(self, name: str) -> Iterator[None]:
        """Only one thread of one process at a time goes on with a file."""
        handle = os.open(self._fetching / f"{_flat(name)}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)


_AGAIN = "make it again, or copy it again"


def mirror_of(path: Path) -> tuple[Mirror, str] | None:
    """The mirror that a file or directory lies in, and its name there; None for all other paths."""
    if not _mirrors:
        return None
    for parent in (path, *path.parents):
        if (found := _mirrors.get(str(parent))) is not None:
            return found, str(path.relative_to(parent))
    return None


def forget(path: Path) -> None:
    """A directory stands for nothing any more."""
    _mirrors.pop(str(path), None)


def fetch_all(paths: Iterable[Path | str]) -> None:
    """Have all files here of those of these datasets that lie in stores, where all of them may be kept."""
    for path in paths:
        if (found := _mirrors.get(str(path))) is not None and found.quota is None:
            found.fetch_all()


def fetched(path: Path) -> bool:
    """Have a file here that lies in a mirror; False where it lies in none, or the store has none.

    Raises:
        DataError: it is not what the manifest says; the store refuses it.
    """
    found = mirror_of(path)
    if found is None or path.exists():
        return False
    mirror, name = found
    try:
        mirror.fetch(name)
    except FileNotFoundError:
        return False
    return True


def in_part(paths: Iterable[Path | str]) -> bool:
    """Whether some of these datasets lie in stores and there is no room for all of them here."""
    found = [each for path in paths if (each := _mirrors.get(str(path))) is not None and each.quota is not None]
    total = sum(sum(each.fetchable().values()) for each in found)
    return any(each.quota is not None and total > each.quota.limit for each in found)


def used(path: Path) -> None:
    """Take note that a file was opened: of fetched ones, those that were used longest ago go first."""
    found = mirror_of(path)
    if found is not None and found[0].quota is not None:
        with suppress(OSError):
            os.utime(path)


def by_ranges(path: Path) -> tuple[str, int] | None:
    """URL and bytes of a file that is read by ranges; None for all others, and where the store has none."""
    found = mirror_of(path)
    if found is None or not found[0].ranged or path.exists():
        return None
    mirror, name = found
    size = mirror.sizes.get(name)
    if size is None or path.name.partition("-")[0] not in mirror.ranged:
        return None
    return mirror.url_of(name), size


def is_mirror(path: Path) -> bool:
    """Whether a directory stands for a dataset of a store."""
    return str(path) in _mirrors


def is_ranged(path: Path) -> bool:
    """Whether some arrays of a dataset of a store are read by ranges."""
    return is_mirror(path) and bool(_mirrors[str(path)].ranged)


def size_of(path: Path) -> int | None:
    """Bytes of a regular file, fetched or not; None where there is none."""
    if path.is_file():
        return path.stat().st_size
    found = mirror_of(path)
    return None if found is None else found[0].sizes.get(found[1])


def _flat(name: str) -> str:
    return name.replace("/", "-of-")


def _missing(url: str) -> DataError:
    return DataError("missing-shard", "named in the manifest, but not there", remedy=_AGAIN, where=url)


def _require_room(directory: Path, needed: int) -> None:
    import shutil

    from packtool.sizes import show_bytes

    free = shutil.disk_usage(directory).free
    if free < needed:
        raise DataError(
            "disk-full",
            f"{show_bytes(needed)} are to be fetched, but only {show_bytes(free)} are free",
            remedy="give --staging with a directory that has room",
            where=str(directory.parent.parent),
        )
