"""Upload an output to an object store while it is written.

A finished piece is uploaded while the next ones are made, and its local copy removed: local disks hold some pieces, not
the output. The store then has what a local output has, under the same names:

    URL/unfinished/state.json                    who is at work
    URL/unfinished/pieces/shard/00000.json, …    records of finished pieces
    URL/unfinished/scratch/block-00000/…         files that have no final name yet
    URL/tokens-00000.npy, …                      those that have one; while an older dataset lies there,
                                                 unfinished/dataset/…

In the end the store copies what has not its final name yet, the manifest comes last, and `unfinished/` goes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event, Semaphore
from typing import ClassVar

import xxhash

from packtool.engines import Engine
from packtool.errors import DataError, PacktoolError
from packtool.places.local import remove_tree
from packtool.places.place import Entry, Place, StoppedError
from packtool.places.store import StorePlace
from packtool.progress import Progress
from packtool.storage import manifest as manifests
from packtool.storage.files import write_bytes
from packtool.storage.names import UNFINISHED
from packtool.storage.output import Delivery, Output
from packtool.storage.publish import DATASET_FILE, RECORDS, STAGED, STATE
from packtool.storage.schema import InputEntry, Manifest, listed
from packtool.temporary import own_directory

UPLOADS = 4
"""Files that are uploaded at once, and the most that wait for it on local disks."""
REQUESTS = 32
"""Small requests that are made at once: records, copies inside the store."""
_STATE = f"{UNFINISHED}/{STATE}"


def directory_for(url: str, staging: Path) -> Path:
    """Return the local directory of an output in the staging directory, named like the dataset."""
    return staging.absolute() / "outputs" / xxhash.xxh3_64_hexdigest(f"{url} ".encode()) / url.rpartition("/")[2]


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
        name = file.absolute().relative_to(self.work).as_posix()
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


@dataclass
class UploadedOutput(Output):
    """Uploads finished pieces in the background, each file whole or not at all. Uploaded files stay readable.

    Attributes:
        place: of the dataset.
        path: the local directory that stands for it.
        there: the files of this work in the store, with their bytes. Only those that a record names are believed.
        replacing: another dataset lies at the place until this one is whole.
        quiet: no progress bar.
    """

    place: StorePlace
    there: Mapping[str, int] = field(default_factory=dict)
    replacing: bool = False
    quiet: bool = True

    def __post_init__(self) -> None:
        self._store = ToStore(self.place, self.work.absolute(), self.replacing)
        self._name = self._store.name
        self._done: set[str] = set()
        self._sent: dict[str, Future[None]] = {}
        self._renamed: dict[str, str] = {}
        self._pool = ThreadPoolExecutor(UPLOADS, thread_name_prefix="packtool-upload")
        self._free = Semaphore(UPLOADS)
        self._stop = Event()
        self._failure: PacktoolError | None = None
        self._begun = b""

    def take(self, begun: bytes, *, empty: bool) -> None:
        """Mark the output in the store as being written, unless another run has done so.

        Args:
            begun: identifies this run.
            empty: the place is empty: of several runs that begin at the same time, one goes on.
        """
        self._begun = begun
        if not empty:
            self.place.write(_STATE, begun)
        elif not self.place.create(_STATE, begun):
            raise self._taken()

    def _require_mine(self) -> None:
        """Stop where another run has begun to write since: nobody could keep it from doing so."""
        try:
            state = self.place.read(_STATE)
        except FileNotFoundError:
            state = b""
        if state != self._begun:
            raise self._taken()

    def _taken(self) -> DataError:
        what = "another run of packtool is writing here"
        remedy = "let one of them end, then run it again with --resume, or choose another output"
        return DataError("output-in-use", what, remedy=remedy, where=str(self.place))

    def delivery(self, engine: Engine, *, far: bool = False) -> Delivery:
        if engine.shares_directories and not far:
            return super().delivery(engine)
        return replace(self._store, here=engine.shares_directories)

    def sound(self, files: Mapping[int, tuple[Path, Sequence[Entry]]], engine: Engine) -> set[int]:
        return {
            number for number, (place, entries) in files.items() if all(self.holds(place, each) for each in entries)
        }

    def holds(self, directory: Path, entry: Entry) -> bool:
        name = self._name(directory / entry.name)
        if self.there.get(name) == entry.bytes:
            self._done.add(name)
        return name in self._done or super().holds(directory, entry)

    def send(self, directory: Path, entries: Sequence[Entry], *, sent: bool = False) -> None:
        """Queue the files of a piece for upload; wait while the queue is full."""
        if sent:
            self._done.update(self._name(directory / entry.name) for entry in entries)
            return
        while not self._free.acquire(timeout=0.2):
            self._require_well()
        self._require_well()
        piece = self._pool.submit(self._send, directory, entries)
        piece.add_done_callback(lambda _: self._free.release())
        for entry in entries:
            self._sent[self._name(directory / entry.name)] = piece

    def _send(self, directory: Path, entries: Sequence[Entry]) -> None:
        with self._failing():
            self._require_mine()
            for entry in entries:
                name = self._name(directory / entry.name)
                if name not in self._done:
                    self.place.put(name, directory / entry.name, entry.xxh3_128, self._stop)
                    self._done.add(name)
                (directory / entry.name).unlink(missing_ok=True)

    @contextmanager
    def _failing(self) -> Iterator[None]:
        """Remember the first failure of what happens in the background."""
        try:
            yield
        except PacktoolError as error:
            if self._failure is None:  # what was uploaded stays
                again = ", then run the command again"
                remedy = f"{error.remedy.removesuffix(again)}{again} with --resume"
                self._failure = type(error)(error.code, error.what, remedy=remedy, where=error.where)
            raise self._failure from None
        except StoppedError:
            raise CancelledError from None

    def _require_well(self) -> None:
        if self._failure is not None:
            raise self._failure
        if self._stop.is_set():
            raise CancelledError

    def have(self, directory: Path, entries: Sequence[Entry]) -> None:
        for entry in entries:
            file = directory / entry.name
            name = self._name(file)
            if (piece := self._sent.get(name)) is not None:
                piece.result()
            if name in self._done and not file.exists():
                self._fetch(name, file, entry.xxh3_128)

    def _fetch(self, name: str, file: Path, digest: str | None = None) -> None:
        """Copy a file of the store to a local one; raise a DataError if its checksum is known and differs."""
        file.parent.mkdir(parents=True, exist_ok=True)
        partial = file.with_name(f"{file.name}.fetched")
        with partial.open("wb") as out:
            arrived = self.place.digest(name, out)
        if digest not in (None, arrived):
            partial.unlink()
            raise self.place.changed(name)
        partial.replace(file)

    def record(
        self,
        file: Path,
        data: bytes,
        directory: Path,
        entries: Sequence[Entry] = (),
        then: Callable[[], object] | None = None,
    ) -> None:
        """Write a record, in the background: what its piece waits for is ahead of it in the same queue."""
        files = [self._sent[name] for entry in entries if (name := self._name(directory / entry.name)) in self._sent]

        def write() -> None:
            with self._failing():
                for each in files:
                    each.result()
                self.share(file, data)
            if then is not None:
                then()

        self._require_well()
        self._sent[self._name(file)] = self._pool.submit(write)

    def share(self, file: Path, data: bytes) -> None:
        self.place.write(self._name(file), data)
        self._done.add(self._name(file))
        write_bytes(file, data)

    def forget(self, file: Path) -> None:
        super().forget(file)
        self.place.remove([self._name(file)])

    def rename(self, directory: Path, entry: Entry, target: Path) -> None:
        """Give a file another name, in the end: the store copies it."""
        self._renamed[self._name(target)] = self._name(directory / entry.name)

    def pull(self) -> None:
        """Fetch the records that an earlier run left in the store."""
        start = f"{UNFINISHED}/{RECORDS}/"
        records = [name for name in self.there if name.startswith(start) and name.endswith(".json")]
        with ThreadPoolExecutor(REQUESTS) as pool:
            todo = [name for name in records if not (self.path / name).exists()]
            list(pool.map(lambda name: self._fetch(name, self.path / name), todo))

    def publish(self, manifest: Manifest) -> None:
        """Upload the rest, have the store rename files by copying, then write the manifest."""
        files = {self._name(self.staged / each.name): each for each in listed(manifest)}
        known = self._done | self._sent.keys()
        with Progress(sum(each.bytes for each in files.values()), "upload", quiet=self.quiet) as bar:
            for name, each in files.items():
                if self._renamed.get(name, name) not in known:
                    self.send(self.staged, [each])
            for piece in list(self._sent.values()):
                piece.result()
            copies = {
                each: source
                for name, each in files.items()
                if (source := self._renamed.get(name, name)) != name or self.replacing
            }
            bar.advance(sum(each.bytes for each in files.values() if each not in copies))
            if self.replacing:
                self.place.remove([manifests.MANIFEST])  # of the older dataset

            def copy(each: InputEntry) -> int:
                self.place.copy(copies[each], each.name)
                return each.bytes

            with ThreadPoolExecutor(REQUESTS) as pool:
                for size in pool.map(copy, copies):
                    bar.advance(size)
        self._require_whole(list(files.values()))
        self._require_mine()
        self.place.write(manifests.RUN, (self.staged / manifests.RUN).read_bytes())
        self.place.write(manifests.MANIFEST, manifests.sealed(manifest))
        tidy(self.place, manifest)

    def _require_whole(self, files: Sequence[InputEntry]) -> None:
        """Refuse to write a manifest while files are missing from the store."""
        there = self.place.names()
        for each in files:
            if (size := there.get(each.name)) != each.bytes:
                what = "is not in the store" if size is None else f"has {size} bytes in the store, not {each.bytes}"
                remedy = "run the command again with --resume"
                raise DataError("store-unreachable", what, remedy=remedy, where=self.place.where(each.name))

    def release(self) -> None:
        self._stop.set()
        self._pool.shutdown(wait=False, cancel_futures=True)
        super().release()
        if not self.work.exists():
            remove_tree(self.path.parent)


def tidy(place: StorePlace, manifest: Manifest) -> None:
    """Remove what does not belong to the finished dataset: of the work on it, and of one that lay there before."""
    kept = {each.name for each in listed(manifest)} | {manifests.RUN, manifests.MANIFEST}
    others = [name for name in place.names() if name not in kept]
    place.remove(name for name in others if name.startswith(f"{UNFINISHED}/") or re.fullmatch(DATASET_FILE, name))
