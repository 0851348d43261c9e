"""Turn what a user typed, paths and URLs of object stores, into places: the one way in."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

from packtool.places.local import LocalPlace
from packtool.places.place import Place
from packtool.places.store import StorePlace
from packtool.places.url import as_typed, dataset_url, is_remote, require_no_secret

Typed: TypeAlias = "str | Path | Place"
"""What public functions take for a dataset: a directory, a URL, or a place."""


def place_of(typed: Typed) -> Place:
    """Return the place that a user means by a path, a URL, or a place, which stays as it is.

    Raises:
        UsageError: the URL of no store that datasets can lie in, or one that holds credentials.

    >>> place_of("data/packed"), place_of("s3://bucket/packed/")
    (LocalPlace('data/packed'), StorePlace('s3://bucket/packed'))
    """
    if isinstance(typed, Place):
        return typed
    url = as_typed(typed)
    if is_remote(url):
        return StorePlace(dataset_url(url))
    require_no_secret(url)  # which may stand in what is no URL of a store, as behind names of caches
    return LocalPlace(typed)


def places_of(typed: Typed | Sequence[Typed]) -> list[Place]:
    """Return the places that a user means by one or several.

    >>> places_of("a"), places_of(["a", "b"])
    ([LocalPlace('a')], [LocalPlace('a'), LocalPlace('b')])
    """
    return [place_of(typed)] if isinstance(typed, str | Path | Place) else list(map(place_of, typed))


def cache_directory() -> Path:
    """Return the directory for what can be fetched again: `packtool` in the user's cache directory."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").absolute() / "packtool"
