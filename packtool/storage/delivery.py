"""Where the finished pieces of an output go: here, they stay in its directory. `uploads.py` sends them to a URL.

A *piece* is what a task makes: the files of a shard, or of a block. Its *record* says that it is finished, with sizes
and checksums: what has one is not made again by a run that goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from packtool.storage import manifest as manifests
from packtool.storage.files import write_shared
from packtool.storage.publish import UNFINISHED, WHOLE, publish
from packtool.storage.reading import problem_with

if TYPE_CHECKING:
    from packtool.storage.schema import Manifest
    from packtool.storage.uploads import Destination


class Entry(Protocol):
    """A finished file, named relative to its directory."""

    @property
    def name(self) -> str: ...
    @property
    def bytes(self) -> int: ...
    @property
    def xxh3_128(self) -> str: ...


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
