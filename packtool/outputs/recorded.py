"""The datasets that a command reads, as they were when it began: what it writes names these as its inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from packtool.errors import DataError
from packtool.formats import manifest as manifests
from packtool.formats.schema import DatasetEntry
from packtool.outputs.output import Output
from packtool.places.place import Place
from packtool.places.typed import Typed, places_of


@dataclass(frozen=True)
class Recorded:
    """Datasets, and the entries that named them before any of their files was opened.

    Whoever overwrites a dataset removes its manifest first, and writes the new one last. So where an entry is the same
    after the last file was opened, all files are of that dataset.
    """

    places: Sequence[Place]
    entries: list[DatasetEntry]

    @classmethod
    def of(cls, given: Typed | Sequence[Typed]) -> Recorded:
        """Record datasets. Raises a DataError where one is missing or damaged."""
        places = places_of(given)
        for place in places:
            manifests.read(place)  # says what lies there instead
        return cls(places, list(map(manifests.input_entry, places)))

    def require_unchanged(self, output: Output | None = None) -> None:
        """Require that all datasets are what they were: another process may have replaced one.

        Args:
            output: what was made of them. It is discarded if one was replaced: it may be of both the old and the new,
                and a resumed run would go on with it.

        Raises:
            DataError: it did.
        """
        for place, entry in zip(self.places, self.entries, strict=True):
            try:
                found = manifests.input_entry(place)
            except (OSError, DataError):  # removed, or being written
                found = None
            if found != entry:
                if output is not None:
                    output.discard()
                what = "has been replaced since the command began"
                raise DataError("input-changed", what, remedy="run the command again", where=str(place))
