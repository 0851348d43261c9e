"""Datasets of object stores, for training: files are fetched when they are first read, and kept while there is room."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from packtool.errors import UsageError
from packtool.places.mirror import is_mirror
from packtool.places.quota import Quota
from packtool.places.staging import cache_directory
from packtool.places.url import as_typed, dataset_url, is_remote
from packtool.sizes import parse_bytes
from packtool.storage.remote import mirror

CACHE_BYTES = "32GiB"
SHARDS, ROWS = "shards", "rows"


@dataclass(frozen=True)
class Cache:
    """Where files of object stores are kept on this machine; processes may share it.

    Attributes:
        directory: absolute.
        bytes: of the arrays of one dataset that stay there. The file that is being fetched comes on top, and those that
            processes have open while others take their place.
        fetch: `SHARDS` or `ROWS`: whole files are kept there; or what is asked for of tokens and segments is read by
        ranges, and not kept.
    """

    directory: Path
    bytes: int
    fetch: str = SHARDS


def cache_of(directory: str | Path | None, size: str | int, fetch: str = SHARDS) -> Cache:
    """As a user asks for it: by default in the user's cache directory.

    Raises:
        UsageError: nothing that can be fetched.

    >>> cache_of("/scratch", "1GiB")
    Cache(directory=PosixPath('/scratch'), bytes=1073741824, fetch='shards')
    """
    if fetch not in (SHARDS, ROWS):
        remedy = f'give "{SHARDS}" or "{ROWS}"'
        raise UsageError("bad-option", f"{fetch!r} is not a known value", remedy=remedy, where="fetch")
    return Cache(cache_directory() if directory is None else Path(directory).absolute(), parse_bytes(size), fetch)


def located(path: str | Path) -> str:
    """A path that is the same everywhere on this machine, or a URL."""
    typed = as_typed(path)
    return dataset_url(typed) if is_remote(typed) else str(Path(path).absolute())


_opened: dict[tuple[str, Cache], Path] = {}


def directory_of(location: str, cache: Cache) -> Path:
    """The directory of a dataset, or the one that stands for it.

    Raises:
        DataError: nothing is there, or it is damaged; the store refuses it.
    """
    if not is_remote(location):
        return Path(location)
    known = _opened.get((location, cache))
    if known is None or not is_mirror(known):
        ranged = ("tokens", "segments") if cache.fetch == ROWS else ()
        # What is read by ranges needs a directory of its own: a mirror is known by it.
        kind = "datasets" if cache.fetch == SHARDS else "ranged"
        known = mirror(location, cache.directory, kind, quota=Quota(cache.bytes), ranged=ranged).path
        _opened[location, cache] = known
    return known
