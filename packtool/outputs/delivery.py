"""Deliver finished files to the output: the worker that made them, on whatever machine, moves or uploads them.

Every try at a task has a directory of its own, its *attempt*: a task may run twice at once, if its first worker was
taken for dead and was not.
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
    """How the finished files of a task get to their places; it is pickled and sent to workers.

    Attributes:
        place: where the files go: the output, a directory in it, or, for files that only other tasks read, a scratch
            directory.
        scratch: directory for attempts, on the file system of a local `place`, so that files are only renamed; None for
            a temporary directory of each worker's own, where workers share no directory and files are uploaded.
        output: the whole output, where the marker is.
        mark: contents of the marker that this run made; empty if a lock keeps other runs out.
        durable: files must survive a crash of the machine.
    """

    place: Place
    scratch: Path | None
    output: Place
    mark: bytes = b""
    durable: bool = True

    @property
    def sends(self) -> bool:
        """Whether files are uploaded to an object store, which costs more than renaming them."""
        return not isinstance(self.place, LocalPlace)

    def below(self, directory: str) -> Delivery:
        """Return a delivery to a directory of the place; to the place itself if the name is empty."""
        return replace(self, place=self.place.below(directory))

    def attempt(self, prefix: str) -> AbstractContextManager[Path]:
        """Make a directory for one attempt at a task, named `prefix` and random letters; remove it after the block."""
        return own_directory(self.scratch, prefix)

    def deliver(self, attempt: Path, entries: Sequence[Entry]) -> None:
        """Move or send finished files of an attempt to their places.

        Args:
            entries: of the files. Their names are those in the place, with directories; in the attempt all files lie
                side by side.

        Raises:
            DataError: another run has taken the output over.
        """
        # Before any file is sent, since the files of a run that lost the output must not overwrite the new owner's. The
        # time in which one task's files are uploaded stays: no request to a store checks another object.
        require_mark(self.output, self.mark)
        for entry in entries:
            file = attempt / entry.name.rpartition("/")[2]
            self.place.put(entry.name, file, entry.xxh3_128, durable=self.durable)


def require_mark(place: Place, mark: bytes) -> None:
    """Stop if another run has taken an output over: an object store has no lock that would prevent it.

    | marker there                   | manifest | what happens                                                     |
    | ------------------------------ | -------- | ---------------------------------------------------------------- |
    | the one that this run made     | any      | go on                                                            |
    | another                        | any      | stop: the output is another run's                                |
    | gone                           | none     | mark again, and go on: a killed run's removal arrived late       |
    | gone                           | there    | stop: another run took the output over, and has finished         |

    A manifest is never one that this run is to replace: that one is removed before any file is delivered.

    Args:
        mark: contents of the marker that this run made; empty if a lock keeps others out, so that no marker is needed.

    Raises:
        DataError: the output is another run's.
    """
    state = state_of_mark(place, mark)
    if state == "gone" and mark_again(place, mark):
        return
    if state != "ours":
        raise taken(place)


def state_of_mark(place: Place, mark: bytes) -> Literal["ours", "gone", "another's"]:
    """Tell whose the marker of an output is, without touching it.

    Args:
        mark: as in `require_mark`.
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
    """Make a marker again after it vanished; return whether the output is still this run's.

    A marker vanishes in two ways. An earlier run was killed while it removed its own marker, and its request arrived
    late: then this run goes on. Or another run took the output over, finished, and removed its marker at its end.
    """
    # The marker first: if the manifest were looked for first, another run could finish between the two steps.
    if not place.create(MARKER, mark):
        return False  # another run has marked the place first
    if place.size(MANIFEST) is None:
        return True
    place.remove([MARKER])  # it would make the finished dataset look like unfinished work
    return False


def taken(place: Place) -> DataError:
    """Return the error for an output that another run writes to, or has finished."""
    what = "another run of packtool is writing here, or has finished just now"
    remedy = "let one of them end, then run the command again with --resume=True, or choose another output"
    return DataError("output-in-use", what, remedy=remedy, where=str(place))
