"""Open the datasets that commands read: from object stores through a cache on the local disk."""

from __future__ import annotations

import re
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import xxhash

from packtool.engines import available_cpus
from packtool.errors import UsageError
from packtool.formats import manifest as manifests
from packtool.formats.names import UNFINISHED
from packtool.formats.schema import InputEntry, listed_files
from packtool.formats.token_store import Corpus
from packtool.formats.unchanged import Unchanged
from packtool.options.shared import MovingRows
from packtool.places.cached import Cache, CachedPlace, copied, fetch_all
from packtool.places.local import LocalPlace
from packtool.places.place import Place
from packtool.places.store import StorePlace
from packtool.places.typed import Typed, cache_directory, place_of, places_of
from packtool.planning.plan import Plan
from packtool.support.sizes import free_bytes, parse_bytes, plural, show_bytes
from packtool.support.temporary import temporary_directory
from packtool.warnings import warn

if TYPE_CHECKING:
    from packtool.options.exchange import ExportArguments  # each is loaded by its own command alone
    from packtool.options.pack import PackArguments
    from packtool.options.shuffle import MaterializeArguments, ShuffleArguments

    Writing: TypeAlias = PackArguments | ShuffleArguments | MaterializeArguments | ExportArguments
    """The arguments of commands that make a dataset of others."""

READ_BYTES = 4 << 30
"""Most bytes of arrays to keep on disk for a command that only reads a dataset of a store, open ones not counted."""
_SAMPLE = 256  # consecutive units in a sample
_SHARD_FILE = re.compile(r"(.*?)[a-z_]+(-\d+)\.npy")


def require_distinct(stores: Sequence[Place]) -> None:
    """Refuse a store that is named twice, which would double its documents silently."""
    seen: set[str] = set()
    for store in stores:
        identity = str(store)
        if isinstance(store, LocalPlace):
            identity = str(store.path.resolve())
        if identity in seen:
            remedy = f"name it once; --mix={store.name}=2x packs its documents twice"
            raise UsageError("store-named-twice", "named twice among the inputs", remedy=remedy, where=str(store))
        seen.add(identity)


@contextmanager
def places_to_read(given: Typed | Sequence[Typed]) -> Iterator[list[Place]]:
    """Yield the places of the datasets a command reads; copies of remote files are removed after the block.

    Args:
        given: what the user typed: one or several.

    Raises:
        DataError: one was replaced during the block.
    """
    places = places_of(given)
    with ExitStack() as stack:
        for place in places:
            stack.enter_context(Unchanged.of(place))
        if not any(isinstance(place, StorePlace) for place in places):
            yield places
            return
        directory = stack.enter_context(temporary_directory())
        cache = Cache(directory, READ_BYTES)
        yield [copied(place, cache) for place in places]


@contextmanager
def places_to_write_from(options: Writing, *given: Typed | Sequence[Typed]) -> Iterator[list[list[Place]]]:
    """Yield the places of the datasets from which a command makes another one, group by group.

    What lies in object stores is copied to the staging directory. The copies stay there after a failure from which the
    output can be resumed.

    Raises:
        UsageError: the staging limit is too small.
    """
    groups = list(map(places_of, given))
    stores = [place for place in chain.from_iterable(groups) if isinstance(place, StorePlace)]
    if not stores:
        yield groups
        return
    cache = _staging_cache(options, stores)
    cache.recheck()
    copies = []
    for group in groups:
        copies.append([copied(place, cache) for place in group])
    try:
        yield copies
    except BaseException:
        output = place_of(options.output)
        if not isinstance(output, LocalPlace) or not (output.path / UNFINISHED).exists():
            cache.remove()
        raise
    cache.remove()


def _staging_cache(options: Writing, stores: Sequence[Place]) -> Cache:
    """Make the directory that inputs are copied to until a command ends: all where they fit, else some at a time."""
    root = cache_directory() if options.staging is None else Path(options.staging)
    directory = root / "inputs" / xxhash.xxh3_64_hexdigest("\n".join(sorted(map(str, stores))).encode())
    if not isinstance(options, MovingRows):
        return Cache(directory)
    limit = free_bytes(root) // 2
    if options.staging_limit is not None:
        limit = parse_bytes(options.staging_limit)
    cluster = options.scheduler is not None
    all_bytes, shard_bytes = _sizes(stores)
    if all_bytes <= limit and not cluster:
        return Cache(directory)
    workers = options.workers or available_cpus()
    needed = workers * shard_bytes
    if needed > limit:
        what = f"{show_bytes(limit)} is too little for {plural(workers, 'worker')} that each read a shard"
        remedy = f"give at least {show_bytes(needed)}, on a disk with as much room, or fewer --workers"
        raise UsageError("staging-too-small", what, remedy=remedy, where="--staging-limit")
    if cluster:  # each worker fetches for itself, and has an equal part of the limit
        return Cache(directory, limit // workers, uuid.uuid4().hex)
    return Cache(directory, limit)


def _sizes(stores: Sequence[Place]) -> tuple[int, int]:
    """Return the bytes of all files of some datasets, and the bytes of the largest shard, all its arrays together."""
    files: dict[tuple[str, str], int] = {}
    for place in stores:
        files |= {(str(place), file.name): file.bytes for file in listed_files(manifests.read(place))}
    shards: Counter[tuple[str, ...]] = Counter()
    for (url, name), size in files.items():
        match = _SHARD_FILE.fullmatch(name)
        if match is not None:
            shards[url, *match.groups()] += size
    return sum(files.values()), max(shards.values(), default=0)


def fetch_inputs(inputs: Sequence[Place], *, quiet: bool) -> None:
    """Copy the inputs that fit into the staging limit before they are read, several files at once."""
    files = []
    for place in inputs:
        if isinstance(place, CachedPlace) and place.cache.limit is None:
            files += [(place, entry) for entry in _arrays(place)]
    if files:
        fetch_all(files, quiet=quiet)


def in_part(inputs: Sequence[Place]) -> bool:
    """Return whether some inputs lie in stores and there is no room for all of them here."""
    limit = _least_limit(inputs)
    if limit is None:
        return False
    held = 0
    for place in inputs:
        if isinstance(place, CachedPlace):
            held += sum(entry.bytes for entry in _arrays(place))
    return held > limit


def _least_limit(places: Sequence[Place]) -> int | None:
    """Return the least limit of the caches of places; None where no cache has one."""
    limits = []
    for place in places:
        if isinstance(place, CachedPlace) and place.cache.limit is not None:
            limits.append(place.cache.limit)
    return min(limits, default=None)


def _arrays(place: Place) -> list[InputEntry]:
    return [file for file in listed_files(manifests.read(place)) if file.name.endswith(".npy")]


def warn_of_scatter(corpus: Corpus, plans: Sequence[Plan]) -> None:
    """Warn if consecutive rows hold documents from so many shards that shards will be fetched again and again."""
    limit = _least_limit([store.place for store in corpus.stores])
    spread = max((_spread(corpus, plan) for plan in plans), default=0) * corpus.dtype.itemsize
    if limit is not None and spread > limit:
        warn(
            "shards-fetched-again",
            f"rows that follow each other hold documents from {show_bytes(spread)} of tokens, of which "
            f"{show_bytes(limit)} may lie here, so shards are fetched again and again",
            remedy="allow more, or plan less together with --window-tokens, which changes the rows",
            where="--staging-limit",
        )


def _spread(corpus: Corpus, plan: Plan) -> int:
    """Measure how far apart the documents of consecutive units lie, in tokens: the largest distance in some samples."""
    most = 0
    for first in np.linspace(0, max(0, plan.units - _SAMPLE), 8).astype(np.int64).tolist():
        document = plan.segments(np.arange(first, min(first + _SAMPLE, plan.units))).document
        if (document >= 0).any():
            most = max(most, int(np.ptp(corpus.locate(document[document >= 0]))))
    return most
