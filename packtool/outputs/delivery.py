"""Put finished files where they belong: the worker that has made them does, on any machine.

Each run of a task writes to its own directory, its *attempt*: a task whose worker was taken for dead may run twice at
once.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

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
        output: the output that the files are part of.
        mark: the contents of its marker, where no lock keeps others out; empty where one does.
        durable: files must survive a crash of the machine.
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
        """Return the same for a directory of the place; for the place itself if the name is empty."""
        return replace(self, place=self.place.below(directory))

    def attempt(self, prefix: str) -> AbstractContextManager[Path]:
        """Make a directory for one attempt at a task, whose name begins with `prefix`; remove it after the block."""
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
    """Stop if another run has begun to write to an output since it was marked, which nothing can prevent.

    Raises:
        DataError: the marker is another's; or it is gone, and another run has finished.
    """
    state = state_of_mark(place, mark)
    if state == "gone" and mark_again(place, mark):
        return
    if state != "ours":
        raise taken(place)


def state_of_mark(place: Place, mark: bytes) -> Literal["ours", "gone", "another's"]:
    """Tell whose the marker of an output is, without touching it.

    Args:
        mark: that this run has made; empty if a lock keeps others out, so that it needs no marker.
    """
    if not mark:
        return "ours"
    try:
        found = place.read(MARKER)
    except FileNotFoundError:
        return "gone"
    if found == mark:
        return "ours"
    return "another's"


def mark_again(place: Place, mark: bytes) -> bool:
    """Make the marker again that is gone; return whether the output is still this run's.

    Two things take a marker away. An earlier run was killed as it removed its own, and that request arrived late: then
    this run goes on. Or another run took the place over, finished, and removed the marker that was its own by then.
    """
    if not place.create(MARKER, mark):
        return False  # another run was faster
    if place.size(MANIFEST) is None:
        return True
    place.remove([MARKER])  # it would make the finished dataset look like unfinished work
    return False


def taken(place: Place) -> DataError:
    """Return the error for an output that another run writes to, or has finished."""
    what = "another run of packtool is writing here, or has finished just now"
    remedy = "let one of them end, then run the command again with --resume, or choose another output"
    return DataError("output-in-use", what, remedy=remedy, where=str(place))
