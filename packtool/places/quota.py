"""Local disk space for what is fetched: what was used longest ago goes when something else is to be fetched."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Condition
from typing import Protocol

_NUMBERED = re.compile(r".*-\d+\.npy")
"""Arrays of shards: of what is fetched only these go again."""


class Keeper(Protocol):
    """A directory of fetched files."""

    @property
    def path(self) -> Path: ...

    def fetchable(self) -> Mapping[str, int]:
        """Names and bytes of the files that can be fetched again."""


class Quota:
    """Bytes of arrays that some mirrors keep, all together, what is being fetched included.

    Whoever has a file mapped that goes keeps it until it is read: room for what each thread reads comes on top.

    Args:
        limit: how many.

    Attributes:
        limit: as given.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._keepers: list[Keeper] = []
        self._coming = 0
        self._changed = Condition()

    def add(self, keeper: Keeper) -> None:
        """Count the files of a mirror, too."""
        self._keepers.append(keeper)

    @contextmanager
    def room_for(self, name: str, size: int) -> Iterator[None]:
        """Remove files until another one fits, whose name and size these are; wait for room that others are filling."""
        if not name.endswith(".npy"):
            yield
            return
        with self._changed:
            self._changed.wait_for(lambda: not self._coming or self._coming + size <= self.limit)
            self._make_room(size)
            self._coming += size
        try:
            yield
        finally:
            with self._changed:
                self._coming -= size
                self._changed.notify_all()

    def _make_room(self, size: int) -> None:
        kept = []
        for keeper in self._keepers:
            for name in keeper.fetchable():
                if name.endswith(".npy"):
                    try:
                        about = (keeper.path / name).stat()
                    except OSError:
                        continue
                    kept.append((about.st_mtime_ns, about.st_size, keeper.path / name))
        total = self._coming + sum(each for _, each, _ in kept)
        for _, each, path in sorted(kept):
            if total + size <= self.limit:
                break
            if _NUMBERED.fullmatch(path.name):
                path.unlink(missing_ok=True)
                total -= each
