"""How much of what a command reads from object stores may lie on local disks at a time."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from packtool.errors import UsageError
from packtool.places.mirror import Mirror
from packtool.places.quota import Quota
from packtool.sizes import parse_bytes, show_bytes

_FILE = re.compile(r"(.*?)[a-z_]+(-\d+)\.npy")


def limit_inputs(mirrors: Sequence[Mirror], root: Path, given: str | int | None, workers: int, *, shared: bool) -> None:
    """Decide whether inputs are fetched whole and stay, or shard by shard, as they are read.

    Args:
        mirrors: of the inputs.
        root: the staging directory.
        given: bytes for them; None for half of what is free there.
        workers: that read at the same time.
        shared: workers are processes of a cluster, each with an equal part of it, and fetch for themselves.

    Raises:
        UsageError: that is too little for as many shards as are read at the same time.
    """
    limit = _half_of_what_is_free(root) if given is None else parse_bytes(given)
    sizes = {(mirror.url, name): size for mirror in mirrors for name, size in mirror.fetchable().items()}
    if sum(sizes.values()) <= limit and not shared:
        return
    shards: Counter[tuple[str, ...]] = Counter()
    for (url, name), size in sizes.items():
        if (found := _FILE.fullmatch(name)) is not None:
            shards[url, *found.groups()] += size
    needed = workers * max(shards.values(), default=0)
    if needed > limit:
        raise UsageError(
            "staging-too-small",
            f"{show_bytes(limit)} are too little for {workers} workers that read a shard each",
            remedy=f"give at least {show_bytes(needed)}, on a disk with as much room, or fewer --workers",
            where="--staging-limit",
        )
    quota = Quota(limit // workers if shared else limit)
    for mirror in mirrors:
        mirror.keep_within(quota)


def _half_of_what_is_free(root: Path) -> int:
    while not root.exists():
        root = root.parent
    return shutil.disk_usage(root).free // 2
