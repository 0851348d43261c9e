"""Deliver the files a worker finishes: into the directory of the output, or straight to its object store.

A task writes to a directory of its own, its *attempt*, since one whose worker was taken for dead runs twice at once.
What is whole is delivered from there, and may then be read by others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from packtool.places.local import LocalPlace, sync_directory
from packtool.places.place import Entry, Place
from packtool.places.store import StorePlace
from packtool.storage.names import UNFINISHED
from packtool.storage.publish import STAGED
from packtool.temporary import own_directory

UPLOADS = 4
"""Files that are uploaded at once, and the most that wait for it on local disks."""


@dataclass(frozen=True)
class Delivery:
    """Takes finished files to where they belong; it is pickled and sent to workers.

    This one renames them: an attempt lies on the file system of the output.

    Attributes:
        sends: files leave the local disk.
    """

    sends: ClassVar[bool] = False

    def attempt(self, beside: Path, prefix: str) -> AbstractContextManager[Path]:
        """Make a directory for one attempt at a task; remove it after the block.

        Args:
            beside: directory to make it in, where the worker sees those of this machine.
            prefix: of its name there.
        """
        return own_directory(beside, prefix)

    def deliver(self, attempt: Path, entries: Sequence[Entry], directory: Path, *, durable: bool = True) -> None:
        """Move finished files to the directory they belong in.

        Args:
            attempt: directory that they lie in.
            entries: their names, sizes and checksums.
            durable: they are to outlive a crash of the machine.
        """
        directory.mkdir(exist_ok=True)
        for entry in entries:
            (attempt / entry.name).replace(directory / entry.name)
        if durable:
            sync_directory(directory)

    def locate(self, file: Path) -> tuple[Place, str]:
        """Return the place and name of a delivered file of the output."""
        return LocalPlace(file.parent), file.name

    def remove(self, files: Iterable[Path]) -> None:
        """Make room, if there is any to make here, by removing files that were delivered."""
        for file in files:
            file.unlink(missing_ok=True)


@dataclass(frozen=True)
class ToStore(Delivery):
    """Uploads files, from any machine.

    Attributes:
        place: of the dataset.
        work: the local directory that stands for its `unfinished`; it need not be there.
        replacing: another dataset lies at the place until this one is whole.
        here: the worker sees the directories of this machine.

    >>> there = ToStore(StorePlace("s3://bucket/packed"), Path("/w"), replacing=False)
    >>> there.name(Path("/w/dataset/tokens-00000.npy")), there.name(Path("/w/scratch/block-00001/tokens-00000.npy"))
    ('tokens-00000.npy', 'unfinished/scratch/block-00001/tokens-00000.npy')
    """

    place: StorePlace
    work: Path
    replacing: bool
    here: bool = False
    sends: ClassVar[bool] = True

    def name(self, file: Path) -> str:
        """Return the name in the store of a file in the local directory."""
        name = file.relative_to(self.work).as_posix()
        if name.startswith(f"{STAGED}/") and not self.replacing:
            return name.removeprefix(f"{STAGED}/")
        return f"{UNFINISHED}/{name}"

    def attempt(self, beside: Path, prefix: str) -> AbstractContextManager[Path]:
        return own_directory(beside if self.here else None, prefix)

    def deliver(self, attempt: Path, entries: Sequence[Entry], directory: Path, *, durable: bool = True) -> None:
        def put(entry: Entry) -> None:
            self.place.put(self.name(directory / entry.name), attempt / entry.name, entry.xxh3_128)

        with ThreadPoolExecutor(UPLOADS) as pool:
            list(pool.map(put, entries))

    def locate(self, file: Path) -> tuple[Place, str]:
        return self.place, self.name(file)

    def remove(self, files: Iterable[Path]) -> None:
        """Leave them: they go with all unfinished work in the store."""
