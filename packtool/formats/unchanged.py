"""Notice that a dataset was overwritten while it is read."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import TypeVar

import xxhash

from packtool.errors import DataError, PacktoolError
from packtool.formats.manifest import MANIFEST
from packtool.places.place import Place

Opened = TypeVar("Opened")


_NO_ANSWER = ("store-unreachable", "store-denied")
"""Errors after which nothing else is asked of a store: it would take as long again."""


class Unchanged:
    """The dataset that a reader opened first, by the digest of its manifest. A block under it reads this one alone.

    A command that overwrites a dataset removes its manifest before any other file, and writes the new one last. So
    whoever maps a file first, and finds the old manifest after that, has a file of the old dataset.

    Args:
        place: of the dataset.
        digest: xxh3-128 of its manifest, in hex; "" where there is none.
    """

    def __init__(self, place: Place, digest: str) -> None:
        self._place = place
        self._digest = digest
        self._seen: object = None

    @classmethod
    def of(cls, place: Place) -> Unchanged:
        """Return the dataset that lies in a place now."""
        stamp = place.stamp(MANIFEST)
        unchanged = cls(place, _digest(place))
        unchanged._seen = stamp
        return unchanged

    def __reduce__(self) -> tuple[type[Unchanged], tuple[Place, str]]:
        return Unchanged, (self._place, self._digest)

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        """Raise a DataError where the manifest is another, or gone: it tells more than an error about a single file."""
        if error is None or (isinstance(error, PacktoolError) and error.code not in _NO_ANSWER):
            self._require()

    def opened(self, open_it: Callable[[], Opened]) -> Opened:
        """Return what a function opens of the dataset, if it still is the same after that.

        Raises:
            DataError: its manifest is another, or gone; else what the function raises.
        """
        with self:
            return open_it()

    def _require(self) -> None:
        stamp = self._place.stamp(MANIFEST)
        # Or a manifest of a million shards would be read for each of them.
        if stamp is not None and stamp == self._seen:
            return
        digest = _digest(self._place)
        if digest != self._digest:
            what = "changed since it was opened: its manifest is " + ("another" if digest else "gone")
            remedy = "run the command again, or open it anew; a checkpoint needs the dataset that its run began with"
            raise DataError("dataset-changed", what, remedy=remedy, where=str(self._place))
        self._seen = stamp


def _digest(place: Place) -> str:
    try:
        return xxhash.xxh3_128_hexdigest(place.read(MANIFEST))
    except (FileNotFoundError, NotADirectoryError):
        return ""
