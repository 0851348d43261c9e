"""Put finished files where they belong: whoever has made them does, on any machine.

A task writes to a directory of its own, its *attempt*, since one whose worker was taken for dead runs twice at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path

from packtool.errors import DataError
from packtool.formats.manifest import MANIFEST
from packtool.formats.names import MARKER
from packtool.places.local import LocalPlace
from packtool.places.place import Entry, Place
from packtool.support.temporary import own_directory


@dataclass(frozen=True)
class Delivery:
    """Puts the files that a task has finished where they belong; it is pickled and sent to workers.

    Attributes:
        place: of the files.
        scratch: directory for attempts, on the file system of a local `place`; None for a temporary one of each worker.
        output: that the files are part of.
        mark: what its marker holds, where no lock keeps others out; nothing where one does.
        durable: files are to outlive a crash of the machine.
    """

    place: Place
    scratch: Path | None
    output: Place
    mark: bytes = b""
    durable: bool = True

    @property
    def sends(self) -> bool:
        """Whether files leave the file system of this machine."""
        return not isinstance(self.place, LocalPlace)

    def below(self, directory: str) -> Delivery:
        """Return what delivers to a directory of the place; to the place itself for an empty name."""
        return replace(self, place=self.place.below(directory))

    def attempt(self, prefix: str) -> AbstractContextManager[Path]:
        """Make a directory for one attempt at a task, whose name begins so; remove it after the block."""
        return own_directory(self.scratch, prefix)

    def deliver(self, attempt: Path, entries: Sequence[Entry]) -> None:
        """Put finished files of an attempt where they belong.

        Raises:
            DataError: another run has taken the output over.
        """
        require_mark(self.output, self.mark)
        for entry in entries:
            file = attempt / entry.name.rpartition("/")[2]
            self.place.put(entry.name, file, entry.xxh3_128, durable=self.durable)


def require_mark(place: Place, mark: bytes) -> None:
    """Stop where another run has begun to write to an output since it was marked: nobody could keep it from doing so.

    A marker that is gone is made again, unless another run has finished: an earlier run was still removing its own.

    Raises:
        DataError: the marker holds something else, or there is a manifest in its place.
    """
    try:
        mine = not mark or place.read(MARKER) == mark
    except FileNotFoundError:
        mine = place.create(MARKER, mark)
        if mine and place.size(MANIFEST) is not None:
            place.remove([MARKER])
            mine = False
    if not mine:
        raise taken(place)


def taken(place: Place) -> DataError:
    """Return the error for an output that another run writes to, or has finished."""
    what = "another run of packtool is writing here, or has finished just now"
    remedy = "let one of them end, then run it again with --resume, or choose another output"
    return DataError("output-in-use", what, remedy=remedy, where=str(place))
