"""Turn what a user typed into a place: the one way in."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

from packtool.places.cached import Cache, CachedPlace
from packtool.places.local import LocalPlace
from packtool.places.place import Place
from packtool.places.store import StorePlace
from packtool.places.url import as_typed, dataset_url, is_remote

Typed: TypeAlias = "str | Path | Place"
"""What public functions take for a dataset: a directory, a URL, or a place."""


def place_of(typed: Typed, cache: Cache | None = None, ranged: Sequence[str] = ()) -> Place:
    """Return the place that a user means.

    Args:
        typed: a path, a URL, or a place, which stays as it is.
        cache: where files of a URL are copied to; None to read them by ranges.
        ranged: kinds of arrays that are read by ranges although there is a cache.

    Raises:
        UsageError: the URL of no store that datasets can lie in, or one that holds credentials.

    >>> place_of("data/packed"), place_of("s3://bucket/packed/")
    (LocalPlace('data/packed'), StorePlace('s3://bucket/packed'))
    """
    if isinstance(typed, Place):
        return typed
    url = as_typed(typed)
    if not is_remote(url):
        return LocalPlace(typed)
    place = StorePlace(dataset_url(url))
    return place if cache is None else CachedPlace(place, cache, ranged)


def places_of(typed: Typed | Sequence[Typed]) -> list[Place]:
    """Return the places that a user means by one or several.

    >>> places_of("a"), places_of(["a", "b"])
    ([LocalPlace('a')], [LocalPlace('a'), LocalPlace('b')])
    """
    return [place_of(typed)] if isinstance(typed, str | Path | Place) else [place_of(each) for each in typed]


def cache_directory() -> Path:
    """Return the directory for what can be fetched again: `packtool` in the user's cache directory."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").absolute() / "packtool"
