"""Commands on datasets in object stores: what they read is copied, or read by ranges, as there is room."""

from __future__ import annotations

import functools
import uuid
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import xxhash

from packtool.commands.staged import limit_of
from packtool.engines import available_cpus
from packtool.errors import UsageError
from packtool.places.cached import Cache, CachedPlace, fetch_all
from packtool.places.local import LocalPlace
from packtool.places.place import Place
from packtool.places.typed import Typed, cache_directory, place_of
from packtool.places.url import as_typed, dataset_url, is_remote
from packtool.storage import manifest as manifests
from packtool.storage.listing import Listed, listed
from packtool.storage.publish import UNFINISHED
from packtool.storage.state import State, look
from packtool.temporary import temporary_directory

Options = TypeVar("Options")
Result = TypeVar("Result")

READ_BYTES = 4 << 30
"""Arrays that a command keeps on disk that reads a dataset of a store and writes none, beside those it has open."""


def with_places(
    *reads: str, output: bool = False, corpus: str = "", ranged: str = ""
) -> Callable[[Callable[[Options], Result]], Callable[[Options], Result]]:
    """Let a command take URLs of datasets: options that hold some hold places instead.

    Args:
        reads: its options that name datasets.
        output: it has the options `output` and `staging`, and what it reads is copied to the staging directory, too.
        corpus: of `reads`, the option that may name text files instead, which the command reads where they are.
        ranged: of `reads`, the option whose tokens are read by ranges, without copies on local disks.
    """

    def decorate(command: Callable[[Options], Result]) -> Callable[[Options], Result]:
        @functools.wraps(command)
        def run(options: Options) -> Result:
            given: Any = options
            target = as_typed(given.output) if output else ""
            there = {name: _listed(getattr(given, name)) for name in reads}
            urls = [str(each) for typed in there.values() for each in typed if is_url(each)]
            if not is_remote(target) and not urls:
                return command(options)
            if getattr(given, "task", None) is not None:
                raise UsageError(
                    "unsupported-store",
                    "tasks of one command share local directories, not those of an object store",
                    remedy="give directories on a shared file system, and copy the result",
                    where="--task",
                )
            with ExitStack() as stack:
                root = _root(given) if output else stack.enter_context(temporary_directory())
                changed: dict[str, Any] = {}
                if is_remote(target):
                    target = dataset_url(target)
                    _refuse_overlap(target, [str(each) for typed in there.values() for each in typed])
                remote = {
                    each: place_of(each)
                    for name, typed in there.items()
                    for each in typed
                    if is_url(each) and (name != corpus or _is_dataset(str(each)))
                }
                cache = _cache(given, list(remote.values()), root, stack, output=output)
                for name, typed in there.items():
                    kinds = ("tokens",) if name == ranged else ()
                    made = [CachedPlace(remote[each], cache, kinds) if each in remote else each for each in typed]
                    many = isinstance(getattr(given, name), list | tuple)
                    if made:
                        changed[name] = made if many else made[0]
                return command(replace(given, **changed))

        return run

    return decorate


def _cache(given: Any, places: Sequence[Place], root: Path, stack: ExitStack, *, output: bool) -> Cache:
    """Where the inputs of a command are copied to, until it ends."""
    if not output:
        return Cache(root, READ_BYTES)
    digest = xxhash.xxh3_64_hexdigest("\n".join(sorted(map(str, places))).encode())
    directory = root / "inputs" / digest
    cluster = getattr(given, "scheduler", None) is not None
    limit = None
    if hasattr(given, "staging_limit"):
        workers = given.workers or available_cpus()
        limit = limit_of(places, root, given.staging_limit, workers, shared=cluster)
    cache = Cache(directory, limit, uuid.uuid4().hex if cluster else "")
    if places:
        cache.recheck()
        target = Path(given.output)
        stack.push(lambda failed, *_: None if failed and (target / UNFINISHED).exists() else cache.remove())
    return cache


def is_url(typed: Any) -> bool:
    """Whether an option names what lies in an object store."""
    return not isinstance(typed, Place) and is_remote(as_typed(typed))


def fetch_inputs(inputs: Sequence[Typed], *, quiet: bool) -> None:
    """Copy inputs of which all may be kept before they are read, several files at once."""
    places = [place for place in map(place_of, inputs) if isinstance(place, CachedPlace) and place.cache.limit is None]
    fetch_all([(place, entry) for place in places for entry in _arrays(place)], quiet=quiet)


def in_part(inputs: Sequence[Typed]) -> bool:
    """Whether some inputs lie in stores and there is no room for all of them here."""
    places = [each for each in map(place_of, inputs) if isinstance(each, CachedPlace)]
    limits = [place.cache.limit for place in places if place.cache.limit is not None]
    return bool(limits) and sum(entry.bytes for place in places for entry in _arrays(place)) > min(limits)


def _arrays(place: Place) -> list[Listed]:
    return [each for each in listed(manifests.read(place)) if each.name.endswith(".npy")]


def local_paths(inputs: Sequence[Typed]) -> list[Path]:
    """Return those inputs that are directories."""
    return [place.path for place in map(place_of, inputs) if isinstance(place, LocalPlace)]


def result_path(typed: Typed) -> Path | str:
    """Return what a result calls the dataset that it is about: its path, or its URL."""
    place = place_of(typed)
    return place.path if isinstance(place, LocalPlace) else str(place)


def _listed(value: Any) -> list[Any]:
    if value is None:
        return []
    return list(value) if isinstance(value, list | tuple) else [value]


def _root(options: Any) -> Path:
    """The staging directory: as given, else in the user's cache."""
    return cache_directory() if options.staging is None else Path(options.staging)


def _is_dataset(url: str) -> bool:
    try:
        return place_of(url).size(manifests.MANIFEST) is not None
    except UsageError:
        return False  # a pattern, or a store of text files alone


def _refuse_overlap(target: str, inputs: Sequence[str]) -> None:
    for url in inputs:
        source = url.rstrip("/")
        if target == source or target.startswith(f"{source}/") or source.startswith(f"{target}/"):
            what = "the output is the input" if target == source else f"the output and the input {url} overlap"
            raise UsageError("output-overlaps-input", what, remedy="choose an output elsewhere", where=target)


def state_at(place: Typed) -> State | None:
    """Which command works on an output, or worked; None if that can't be told, or nothing is there."""
    return look(place_of(place)).state


def is_occupied(place: Typed) -> bool:
    """Whether something lies at an output."""
    return bool(look(place_of(place)).names)
