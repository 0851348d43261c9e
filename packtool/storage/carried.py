"""Datasets as other processes find them: by their path; those in object stores by their URL, each worker of a cluster
fetching what it needs to a disk of its own.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from pathlib import Path

import xxhash

from packtool.errors import DataError
from packtool.places.mirror import forget, mirror_of
from packtool.places.quota import Quota
from packtool.storage import manifest as manifests
from packtool.storage.remote import mirror
from packtool.temporary import discard, new_directory

_RUN = uuid.uuid4().hex
"""Of this process: what workers fetched for another one goes when they are asked to work for this one."""


@dataclass(frozen=True)
class FromStore:
    """A dataset in an object store.

    Attributes:
        url: of it.
        version: xxh3-128 of its manifest.
        limit: bytes of it and others that a process keeps.
        run: that it is read for.
    """

    url: str
    version: str
    limit: int
    run: str


@dataclass
class _Fetched:
    """What this process has for a run."""

    run: str
    root: Path
    quota: Quota
    paths: dict[str, Path]


_fetched: list[_Fetched] = []


def carried(path: Path) -> Path | FromStore:
    """A dataset, to be sent to other processes."""
    found = mirror_of(path)
    if found is None or found[0].quota is None:
        return path.absolute()
    version = _version(found[0].path)
    return FromStore(found[0].url, version, found[0].quota.limit, _RUN)


def arrived(place: Path | str | FromStore) -> Path:
    """Where a dataset that was sent lies here, or the directory that stands for it.

    Raises:
        DataError: it is another one now; the store refuses it.
    """
    if not isinstance(place, FromStore):
        return Path(place)
    if not _fetched or _fetched[0].run != place.run:
        forget_fetched()
        _fetched.append(_Fetched(place.run, new_directory(), Quota(place.limit), {}))
    here = _fetched[0]
    if place.url not in here.paths:
        made = mirror(place.url, here.root, quota=here.quota)
        if _version(made.path) != place.version:
            what = "has been replaced since the command began"
            raise DataError("wrong-checksum", what, remedy="run the command again", where=place.url)
        here.paths[place.url] = made.path
    return here.paths[place.url]


def forget_fetched() -> None:
    """Remove what this process has fetched for others."""
    while _fetched:
        here = _fetched.pop()
        for path in here.paths.values():
            forget(path)
        discard(here.root)


def _version(path: Path) -> str:
    return xxhash.xxh3_128_hexdigest((path / manifests.MANIFEST).read_bytes())
