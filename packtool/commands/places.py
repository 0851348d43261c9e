"""Open datasets in object stores for commands: copied to local disk, or read by ranges, as there is room."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import xxhash

from packtool.commands.staging_limit import limit_of
from packtool.engines import available_cpus
from packtool.options.shared import MovingRows
from packtool.places.cached import Cache, CachedPlace, fetch_all
from packtool.places.local import LocalPlace
from packtool.places.place import Place
from packtool.places.store import StorePlace
from packtool.places.typed import Typed, cache_directory, place_of, places_of
from packtool.storage import manifest as manifests
from packtool.storage.claim import not_shared
from packtool.storage.names import UNFINISHED
from packtool.storage.schema import InputEntry, listed
from packtool.temporary import temporary_directory

if TYPE_CHECKING:
    from packtool.options.exchange import ExportArguments
    from packtool.options.pack import PackArguments
    from packtool.options.shuffle import MaterializeArguments, ShuffleArguments

Written: TypeAlias = "PackArguments | ShuffleArguments | MaterializeArguments | ExportArguments"
"""What commands take that make a dataset of others."""
READ_BYTES = 4 << 30
"""Arrays that a command keeps on disk that reads a dataset of a store and writes none, beside those it has open."""


@contextmanager
def places_to_read(given: Typed | Sequence[Typed], *, ranged: Sequence[str] = ()) -> Iterator[list[Place]]:
    """Yield the places of the datasets a command reads; copies of remote files are removed after the block.

    Args:
        given: what the user typed: one or several.
        ranged: kinds of arrays that are read by ranges, such as ``tokens``, and never copied.
    """
    places = places_of(given)
    if not any(isinstance(each, StorePlace) for each in places):
        yield places
        return
    with temporary_directory() as directory:
        cache = Cache(directory, READ_BYTES)
        yield [_copied(each, cache, ranged) for each in places]


@contextmanager
def places_to_write_from(options: Written, *given: Typed | Sequence[Typed]) -> Iterator[list[list[Place]]]:
    """Yield the places of datasets that a command makes another one of, group by group.

    What lies in stores is copied to the staging directory, and stays there after a failure from which the output can be
    resumed.

    Raises:
        UsageError: tasks can't share what lies in a store; the staging limit is too small.
    """
    groups = [places_of(each) for each in given]
    stores = [each for group in groups for each in group if isinstance(each, StorePlace)]
    if not stores:
        yield groups
        return
    if isinstance(options, MovingRows) and options.task is not None:
        raise not_shared()
    cache = _staging_cache(options, stores)
    cache.recheck()
    try:
        yield [[_copied(each, cache) for each in group] for group in groups]
    except BaseException:
        output = place_of(options.output)
        if not isinstance(output, LocalPlace) or not (output.path / UNFINISHED).exists():
            cache.remove()
        raise
    cache.remove()


def _staging_cache(options: Written, stores: Sequence[Place]) -> Cache:
    """Make the directory that a command's inputs are copied to, until it ends."""
    root = cache_directory() if options.staging is None else Path(options.staging)
    directory = root / "inputs" / xxhash.xxh3_64_hexdigest("\n".join(sorted(map(str, stores))).encode())
    if not isinstance(options, MovingRows):
        return Cache(directory)
    cluster = options.scheduler is not None
    workers = options.workers or available_cpus()
    limit = limit_of(stores, root, options.staging_limit, workers, shared=cluster)
    return Cache(directory, limit, uuid.uuid4().hex if cluster else "")


def _copied(place: Place, cache: Cache, ranged: Sequence[str] = ()) -> Place:
    return CachedPlace(place, cache, ranged) if isinstance(place, StorePlace) else place


def fetch_inputs(inputs: Sequence[Place], *, quiet: bool) -> None:
    """Copy the inputs that fit into the staging limit before they are read, several files at once."""
    places = [place for place in inputs if isinstance(place, CachedPlace) and place.cache.limit is None]
    fetch_all([(place, entry) for place in places for entry in _arrays(place)], quiet=quiet)


def in_part(inputs: Sequence[Place]) -> bool:
    """Return whether some inputs lie in stores and there is no room for all of them here."""
    places = [each for each in inputs if isinstance(each, CachedPlace)]
    limits = [place.cache.limit for place in places if place.cache.limit is not None]
    return bool(limits) and sum(entry.bytes for place in places for entry in _arrays(place)) > min(limits)


def _arrays(place: Place) -> list[InputEntry]:
    return [each for each in listed(manifests.read(place)) if each.name.endswith(".npy")]


def result_path(typed: Typed) -> Path | str:
    """Return the path or URL by which a result names its dataset."""
    place = place_of(typed)
    return place.path if isinstance(place, LocalPlace) else str(place)
