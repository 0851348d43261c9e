"""Notice that a dataset was overwritten while it is read."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import xxhash

from packtool.errors import DataError
from packtool.formats.manifest import MANIFEST
from packtool.places.place import Place

Opened = TypeVar("Opened")


class Unchanged:
    """The dataset that a reader opened first, by the digest of its manifest.

    A command that overwrites a dataset removes its manifest before any other file, and writes the new one last. So
    whoever maps a file first, and finds the old manifest after that, has a file of the old dataset.

    Args:
        place: of the dataset.
        digest: xxh3-128 of its manifest, in hex.
    """

    def __init__(self, place: Place, digest: str) -> None:
        self._place = place
        self._digest = digest
        self._seen: object = None

    def __reduce__(self) -> tuple[type[Unchanged], tuple[Place, str]]:
        return Unchanged, (self._place, self._digest)

    def opened(self, open_it: Callable[[], Opened]) -> Opened:
        """Return what a function opens of the dataset, if it still is the same after that.

        Raises:
            DataError: its manifest is another, or gone; else what the function raises.
        """
        try:
            found = open_it()
        except DataError:
            self._require()  # an error that the dataset was overwritten tells more than one about a single file
            raise
        self._require()
        return found

    def _require(self) -> None:
        seen = self._place.stamp(MANIFEST)
        if seen is not None and seen == self._seen:  # or a manifest of a million shards would be read for each of them
            return
        try:
            digest = xxhash.xxh3_128_hexdigest(self._place.read(MANIFEST))
        except FileNotFoundError:
            digest = ""
        if digest != self._digest:
            what = "changed since it was opened: its manifest is " + ("another" if digest else "gone")
            remedy = "open the dataset anew, or resume from a checkpoint with the dataset that the run began with"
            raise DataError("dataset-changed", what, remedy=remedy, where=str(self._place))
        self._seen = seen
