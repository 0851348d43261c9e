"""Open datasets for training, and decide what to cache of those in object stores."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import xxhash

from packtool.errors import UsageError
from packtool.places.cached import Cache, CachedPlace
from packtool.places.local import LocalPlace
from packtool.places.place import Place
from packtool.places.store import StorePlace
from packtool.places.typed import Typed, cache_directory, place_of, places_of
from packtool.sizes import parse_bytes

CACHE_BYTES = "32GiB"
SHARDS, ROWS = "shards", "rows"


def training_place(typed: Typed, directory: str | Path | None, size: str | int, fetch: str = SHARDS) -> Place:
    """Return the place of a dataset, which is the same everywhere on this machine.

    Args:
        typed: a path, a URL or a place.
        directory: where files of a URL are kept; None for the user's cache directory.
        size: of the dataset's arrays that stay there, in bytes or as "32GiB". The file that is being fetched counts;
            those that processes have open while others took their place come on top.
        fetch: `SHARDS` or `ROWS`: whole files are kept there; or what is asked for of tokens and segments is read by
            ranges, and not kept.

    Raises:
        UsageError: nothing that can be fetched.

    >>> training_place("s3://lab/packed", "/scratch", "1GiB").cache.limit
    1073741824
    """
    if fetch not in (SHARDS, ROWS):
        remedy = f'give "{SHARDS}" or "{ROWS}"'
        raise UsageError("bad-option", f"{fetch!r} is not a known value", remedy=remedy, where="fetch")
    limit = parse_bytes(size)
    place = place_of(typed)
    if isinstance(place, LocalPlace):
        return LocalPlace(place.path.absolute())
    if not isinstance(place, StorePlace):
        return place
    root = cache_directory() if directory is None else Path(directory)
    cache = Cache(root / "datasets" / xxhash.xxh3_64_hexdigest(place.url.encode()), limit)
    return CachedPlace(place, cache, ("tokens", "segments", "loss") if fetch == ROWS else ())


def training_places(
    typed: Typed | Sequence[Typed], directory: str | Path | None, size: str | int, fetch: str = SHARDS
) -> tuple[Place, ...]:
    """Compute `training_place` of token stores: one or several."""
    return tuple(training_place(each, directory, size, fetch) for each in places_of(typed))
