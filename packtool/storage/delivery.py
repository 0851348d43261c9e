"""Where the finished pieces of an output go: here, they stay in its directory. `uploads.py` sends them to a URL.

A *piece* is what a task makes: the files of a shard, or of a block. Its *record* says that it is finished, with sizes
and checksums: what has one is not made again by a run that goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Protocol

from packtool.places import transfer
from packtool.storage import manifest as manifests
from packtool.storage.files import write_shared
from packtool.storage.publish import STAGED, UNFINISHED, WHOLE, publish
from packtool.storage.reading import problem_with

if TYPE_CHECKING:
    from packtool.storage.schema import Manifest


class Entry(Protocol):
    """A finished file, named relative to its directory."""

    @property
    def name(self) -> str: ...
    @property
    def bytes(self) -> int: ...
    @property
    def xxh3_128(self) -> str: ...


@dataclass(frozen=True)
class Destination:
    """Where the files of an unfinished output go; any process, on any machine, may send them.

    Attributes:
        url: of the dataset.
        work: the local directory that stands for ``URL/unfinished``; it need not be there.
        replacing: another dataset lies at the URL until this one is whole.

    >>> there = Destination("s3://bucket/packed", Path("/w"), replacing=False)
    >>> there.of(Path("/w/dataset/tokens-00000.npy")), there.of(Path("/w/block-000001.json"))
    ('s3://bucket/packed/tokens-00000.npy', 's3://bucket/packed/unfinished/block-000001.json')
    """

    url: str
    work: Path
    replacing: bool

    def of(self, file: Path) -> str:
        """The URL of a file in the local directory."""
        name = file.relative_to(self.work).as_posix()
        if name.startswith(f"{STAGED}/") and not self.replacing:
            return f"{self.url}/{name.removeprefix(f'{STAGED}/')}"
        return f"{self.url}/{UNFINISHED}/{name}"

    def deliver(self, source: Path, entries: Sequence[Entry], directory: Path) -> None:
        """Send files and remove them here.

        Args:
            source: directory that they lie in.
            directory: that they belong in.
        """
        for entry in entries:
            self.upload(source, entry, directory, Event())
            (source / entry.name).unlink()

    def upload(self, source: Path, entry: Entry, directory: Path, stop: Event) -> None:
        """Send a file, which stays here; given up when `stop` is set."""
        transfer.upload(source / entry.name, self.of(directory / entry.name), stop, entry.xxh3_128)


class Delivery:
    """Finished pieces of an output that stay where they are.

    Attributes:
        destination: where workers on other machines send what they finish; None where all see the same directory.
    """

    destination: Destination | None = None

    def holds(self, directory: Path, entry: Entry) -> bool:
        """Whether a file that a record names is still as it was written."""
        return problem_with(directory, entry.name, entry.bytes, entry.xxh3_128) is None

    def send(self, directory: Path, entries: Sequence[Entry]) -> None:
        """Let the files of a piece go, which nobody writes to any more."""

    def arrived(self, directory: Path, entries: Sequence[Entry]) -> None:
        """Take note that a worker has sent the files of a piece."""

    def record(
        self,
        path: Path,
        data: bytes,
        directory: Path,
        entries: Sequence[Entry] = (),
        then: Callable[[], object] | None = None,
    ) -> None:
        """Write the record of a piece once its files are where they go, then call something."""
        write_shared(path, data)
        if then is not None:
            then()

    def share(self, path: Path, data: bytes) -> None:
        """Write a small file that all workers need."""
        write_shared(path, data)

    def forget(self, path: Path) -> None:
        """Remove a record."""
        path.unlink(missing_ok=True)

    def place(self, directory: Path, entry: Entry, target: Path) -> None:
        """Give a file another name: by a link, so that until the output is whole its piece stays whole, too."""
        target.unlink(missing_ok=True)
        try:
            target.hardlink_to(directory / entry.name)
        except OSError:  # a file system without links: after an interruption the piece is made again
            (directory / entry.name).rename(target)

    def finish(self, path: Path, manifest: Manifest) -> None:
        """Make the staged files a dataset."""
        manifests.write(path / UNFINISHED, manifest, WHOLE)
        publish(path)

    def close(self) -> None:
        """Stop what is on its way."""
