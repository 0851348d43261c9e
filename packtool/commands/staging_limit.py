"""Limit how much of a command's remote input may lie on local disks at a time."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from packtool.errors import UsageError
from packtool.places.cached import CachedPlace
from packtool.places.place import Place
from packtool.plan import Plan
from packtool.sizes import free_bytes, parse_bytes, show_bytes
from packtool.storage import manifest as manifests
from packtool.storage.schema import listed
from packtool.storage.token_store import Corpus
from packtool.warnings import warn

_SAMPLE = 256
"""Units that are looked at together."""
_FILE = re.compile(r"(.*?)[a-z_]+(-\d+)\.npy")


def limit_of(places: Sequence[Place], root: Path, given: str | int | None, workers: int, *, shared: bool) -> int | None:
    """Decide how much of a command's inputs to keep at a time; None for all of them, which are fetched whole.

    Args:
        places: of the inputs.
        root: the staging directory.
        given: bytes for them; None for half of what is free there.
        workers: that read at the same time.
        shared: workers are processes of a cluster, each with an equal part of it, and fetch for themselves.

    Raises:
        UsageError: that is too little for as many shards as are read at the same time.
    """
    if not places:
        return None
    limit = free_bytes(root) // 2 if given is None else parse_bytes(given)
    sizes = {(str(place), each.name): each.bytes for place in places for each in listed(manifests.read(place))}
    if sum(sizes.values()) <= limit and not shared:
        return None
    shards: Counter[tuple[str, ...]] = Counter()
    for (url, name), size in sizes.items():
        if (match := _FILE.fullmatch(name)) is not None:
            shards[url, *match.groups()] += size
    needed = workers * max(shards.values(), default=0)
    if needed > limit:
        raise UsageError(
            "staging-too-small",
            f"{show_bytes(limit)} are too little for {workers} workers that read a shard each",
            remedy=f"give at least {show_bytes(needed)}, on a disk with as much room, or fewer --workers",
            where="--staging-limit",
        )
    return limit // workers if shared else limit


def warn_of_scatter(corpus: Corpus, plans: Sequence[Plan]) -> None:
    """Warn if consecutive rows hold documents from so many shards that shards will be fetched again and again."""
    places = [store.place for store in corpus.stores]
    limits = [place.cache.limit for place in places if isinstance(place, CachedPlace)]
    limit = min((each for each in limits if each is not None), default=None)
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
