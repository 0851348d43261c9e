"""An output on its way to an object store while it is written.

A finished piece is uploaded while the next ones are made, and its local copy removed: local disks hold some pieces, not
the output. The store then has what a local output has, under the same names:

    URL/unfinished/state.json             who is at work
    URL/unfinished/pieces/shard/00000.json, …    records of finished pieces
    URL/unfinished/scratch/block-000000/…        files whose final names are not known yet
    URL/tokens-00000.npy, …               those whose names are; while an older dataset lies there, unfinished/dataset/…

In the end the store copies what has not its final name yet, the manifest comes last, and `unfinished/` goes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from pathlib import Path
from threading import Event, Semaphore

from packtool.errors import DataError, PacktoolError
from packtool.places import transfer
from packtool.places.mirror import Mirror
from packtool.places.place import StoppedError
from packtool.progress import Progress
from packtool.storage import manifest as manifests
from packtool.storage import remote
from packtool.storage.delivery import Delivery, Destination, Entry
from packtool.storage.files import write_shared
from packtool.storage.listing import Listed, listed
from packtool.storage.publish import RECORDS, STAGED, UNFINISHED
from packtool.storage.schema import Manifest

UPLOADS = 4
"""Pieces that are uploaded at once, and the most that wait for it on local disks."""
REQUESTS = 32
"""Small requests that are made at once: records, copies inside the store."""


class Uploads(Delivery):
    """Sends finished pieces in the background, each file as a whole or not at all.

    What was sent can still be read: it is fetched again.

    Args:
        destination: where to.
        there: objects that lie in ``URL/unfinished``, or would without an older dataset, by name, and their bytes. Only
            those that a record names are believed.
        quiet: no progress bar.
    """

    def __init__(self, destination: Destination, there: Mapping[str, int], *, quiet: bool) -> None:
        self.destination: Destination = destination
        self._there = there
        self._quiet = quiet
        self._done: dict[str, int] = {}
        self._sent: dict[str, Future[None]] = {}
        self._placed: dict[str, str] = {}
        self._pool = ThreadPoolExecutor(UPLOADS, thread_name_prefix="packtool-upload")
        self._free = Semaphore(UPLOADS)
        self._stop = Event()
        self._failure: PacktoolError | None = None
        _WorkMirror(destination, self._done)

    def holds(self, directory: Path, entry: Entry) -> bool:
        name = self._name(directory / entry.name)
        if self._there.get(name) == entry.bytes:
            self._done[name] = entry.bytes
        return name in self._done or super().holds(directory, entry)

    def send(self, directory: Path, entries: Sequence[Entry]) -> None:
        """Let the files of a piece go. Waits where as many as may wait do so."""
        while not self._free.acquire(timeout=0.2):
            self._require_well()
        self._require_well()
        if not entries:
            self._free.release()
            return
        piece = self._pool.submit(self._deliver, directory, entries)
        piece.add_done_callback(lambda _: self._free.release())
        for entry in entries:
            self._sent[self._name(directory / entry.name)] = piece

    def _deliver(self, directory: Path, entries: Sequence[Entry]) -> None:
        try:
            for entry in entries:
                name = self._name(directory / entry.name)
                if name not in self._done:
                    self.destination.upload(directory, entry, directory, self._stop)
                    self._done[name] = entry.bytes
                (directory / entry.name).unlink(missing_ok=True)  # only now: whoever reads it finds it there
        except PacktoolError as error:
            self._failure = self._failure or _with_resume(error)
            raise self._failure from None
        except StoppedError:
            raise CancelledError from None

    def _require_well(self) -> None:
        if self._failure is not None:
            raise self._failure
        if self._stop.is_set():
            raise CancelledError

    def arrived(self, directory: Path, entries: Sequence[Entry]) -> None:
        self._done.update({self._name(directory / entry.name): entry.bytes for entry in entries})

    def record(
        self,
        path: Path,
        data: bytes,
        directory: Path,
        entries: Sequence[Entry] = (),
        then: Callable[[], object] | None = None,
    ) -> None:
        """Write a record, in the background: what its piece waits for is ahead of it in the same queue."""
        names = [self._name(directory / entry.name) for entry in entries]
        files = {self._sent.get(name) for name in names} - {None}

        def write() -> None:
            try:
                for each in files:
                    each.result()  # type: ignore[union-attr]
                transfer.write(self.destination.of(path), data)
                write_shared(path, data)
            except PacktoolError as error:
                self._failure = self._failure or _with_resume(error)
                raise self._failure from None
            if then is not None:
                then()

        self._require_well()
        self._sent[self._name(path)] = self._pool.submit(write)

    def share(self, path: Path, data: bytes) -> None:
        write_shared(path, data)
        transfer.write(self.destination.of(path), data)

    def forget(self, path: Path) -> None:
        super().forget(path)
        transfer.remove(self.destination.of(path))

    def place(self, directory: Path, entry: Entry, target: Path) -> None:
        """Give a file another name, in the end: the store copies it."""
        self._placed[self._name(target)] = self._name(directory / entry.name)

    def pull(self) -> None:
        """Have the records here that an earlier run left in the store."""
        records = [name for name in self._there if _is_record(name) and not (self.destination.work / name).exists()]

        def fetch(name: str) -> None:
            file = self.destination.work / name
            file.parent.mkdir(parents=True, exist_ok=True)
            write_shared(file, transfer.read(self.destination.of(file)))

        with ThreadPoolExecutor(REQUESTS) as pool:
            list(pool.map(fetch, records))

    def finish(self, path: Path, manifest: Manifest) -> None:
        """Send what is left, have the store copy what has not its name yet, then write the manifest."""
        url, staged = self.destination.url, self.destination.work / STAGED
        files = {f"{STAGED}/{each.name}": each for each in listed(manifest)}
        known = self._done.keys() | self._sent.keys()
        rest = [each for name, each in files.items() if self._placed.get(name, name) not in known]
        with Progress(sum(each.bytes for each in files.values()), "upload", quiet=self._quiet) as bar:
            for each in rest:
                self.send(staged, [each])
            for piece in list(self._sent.values()):
                piece.result()
            copies = {
                name: source
                for name in files
                if (source := self._placed.get(name, name)) != name or self.destination.replacing
            }
            bar.advance(sum(each.bytes for name, each in files.items() if name not in copies))
            if self.destination.replacing:
                transfer.remove(f"{url}/{manifests.MANIFEST}")  # of the older dataset

            def copy(name: str) -> int:
                source = self.destination.of(self.destination.work / copies[name])
                transfer.copy(source, f"{url}/{files[name].name}")
                return files[name].bytes

            with ThreadPoolExecutor(REQUESTS) as pool:
                for size in pool.map(copy, copies):
                    bar.advance(size)
        _require_whole(url, files.values())
        transfer.write(f"{url}/{manifests.RUN}", (staged / manifests.RUN).read_bytes())
        transfer.write(f"{url}/{manifests.MANIFEST}", manifests.sealed(manifest))
        remote.tidy(url, manifest)

    def close(self) -> None:
        self._stop.set()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _name(self, file: Path) -> str:
        return file.relative_to(self.destination.work).as_posix()


class _WorkMirror(Mirror):
    """Stands for what was sent of an unfinished output."""

    def __init__(self, destination: Destination, sizes: dict[str, int]) -> None:
        super().__init__(f"{destination.url}/{UNFINISHED}", destination.work, sizes=sizes)
        self._destination = destination

    def url_of(self, name: str) -> str:
        return self._destination.of(self.path / name)


def _is_record(name: str) -> bool:
    """Whether a name in ``unfinished/`` is that of a record.

    >>> _is_record("pieces/shard/00000.json"), _is_record("dataset/report.json"), _is_record("state.json")
    (True, False, False)
    """
    return name.startswith(f"{RECORDS}/") and name.endswith(".json")


def _require_whole(url: str, files: Iterable[Listed]) -> None:
    """Refuse to write a manifest beside what is not there.

    Raises:
        DataError: naming the first object.
    """
    there = transfer.names_below(url)
    for each in files:
        if (found := there.get(each.name)) != each.bytes:
            what = "is not in the store" if found is None else f"has {found} bytes in the store, not {each.bytes}"
            remedy = "run the command again with --resume"
            raise DataError("store-unreachable", what, remedy=remedy, where=f"{url}/{each.name}")


def _with_resume(error: PacktoolError) -> PacktoolError:
    """What is uploaded stays so."""
    remedy = f"{error.remedy.removesuffix(', then run the command again')}, then run the command again with --resume"
    return type(error)(error.code, error.what, remedy=remedy, where=error.where)
