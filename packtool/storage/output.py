"""An output that is being written: staged beside what it replaces, then published, with its manifest last.

Everything that a command writes lies in `unfinished/` inside the output until it is whole, the dataset itself in
`unfinished/dataset`. `finish` puts it in its place, in place of the dataset that `--overwrite` was to replace. Who may
write to a place, and with what it goes on, `claim.py` decides. An output in an object store (`uploads.py`) is made in a
local directory that stands for it, and its finished files are sent while others are written.

Work is numbered. A *piece* is what a task makes: the files of a shard, or of a block. Its *record* is written last:

    unfinished/pieces/shard/00017.json     what piece 17 of this kind is: sizes and checksums of its files, and counts

What has a record is not done again, as long as its files are what it says. An interrupted run and a cluster that lost a
worker are the same here: some records are there, and some are not.

A task writes to a directory of its own, its *attempt*, since one whose worker was taken for dead runs twice at once.
What is whole is delivered from there, and may then be read by others.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import msgspec

from packtool.engines import Engine, Worker
from packtool.engines.engine import Advance
from packtool.errors import DataError
from packtool.places.local import LocalPlace, sync_directory
from packtool.places.place import Entry, Place
from packtool.storage import manifest as manifests
from packtool.storage.files import write_bytes
from packtool.storage.lock import Lock
from packtool.storage.manifest import decode
from packtool.storage.names import UNFINISHED
from packtool.storage.publish import RECORDS, SCRATCH, STAGED, STATE, WHOLE, publish, remove_work
from packtool.storage.schema import Manifest
from packtool.temporary import own_directory

Done = TypeVar("Done")
Task = TypeVar("Task")


class State(msgspec.Struct, frozen=True):
    """Which command works here (or worked, in `run.json`), and the key of its options and inputs."""

    command: str
    key: str

    def same(self, other: State | None) -> bool:
        """Return whether another has this command and key."""
        return other is not None and (self.command, self.key) == (other.command, other.key)


class Begun(State, frozen=True):
    """The state, and how to go on.

    Attributes:
        arguments: of the command, as `packtool.options.arguments` has them.
        run: identifies this run in an object store.
    """

    arguments: dict[str, Any] = {}
    run: str = ""


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
        """Move finished files from an attempt to where they belong; `durable`: they are to outlive a crash."""
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


@dataclass
class Output:
    """An output in a local directory, which nobody else writes to, until the end of its block.

    Attributes:
        place: where the dataset lies when it is whole.
        path: the directory in which it is made: that of the place, or one that stands for it.
        state: command and key.
        resumed: an earlier run with the same key stopped here; its pieces are kept.
        finished: an earlier run with the same key finished here; there is nothing left to do.
        lock: held while this run works; None where there is nothing to do.
    """

    place: Place
    path: Path
    state: State
    resumed: bool = False
    finished: bool = False
    lock: Lock | None = None

    @property
    def shown(self) -> Path | str:
        """What results call it: its path, or its URL."""
        return self.path if isinstance(self.place, LocalPlace) else str(self.place)

    @property
    def work(self) -> Path:
        """For all that is unfinished; gone after `finish`."""
        return self.path / UNFINISHED

    @property
    def staged(self) -> Path:
        """The directory in `work` for the files of the dataset."""
        return self.work / STAGED

    @property
    def scratch(self) -> Path:
        """The directory in `work` for files that are not finished, or have no final name yet."""
        return self.work / SCRATCH

    def make(self) -> None:
        """Make the directories."""
        for directory in (self.staged, self.scratch):
            directory.mkdir(parents=True, exist_ok=True)

    def delivery(self, engine: Engine, *, far: bool = False) -> Delivery:
        """Return how the workers of an engine deliver files; with `far`, straight to a store where there is one."""
        return Delivery()

    def holds(self, directory: Path, entry: Entry) -> bool:
        """Return whether a recorded file is still as it was written."""
        return LocalPlace(directory).problem(entry) is None

    def sound(self, files: Mapping[int, tuple[Path, Sequence[Entry]]], engine: Engine) -> set[int]:
        """Return the pieces whose files, listed with their directory, are as they were written. An engine looks."""
        todo = [number for number, (_, entries) in files.items() if entries]
        tasks = [(str(directory.absolute()), list(entries)) for directory, entries in map(files.__getitem__, todo)]
        shared = None if engine.shares_directories else self.work.absolute() / STATE
        with closing(engine.run(_holds, tasks, shared=shared)) as results:
            return (files.keys() - set(todo)) | {todo[at] for at, whole in results if whole}

    def send(self, directory: Path, entries: Sequence[Entry], *, sent: bool = False) -> None:
        """Hand over the files of a piece, which are complete; `sent`: a worker has sent them already."""

    def have(self, directory: Path, entries: Sequence[Entry]) -> None:
        """Make sent files available here."""

    def record(
        self,
        file: Path,
        data: bytes,
        directory: Path,
        entries: Sequence[Entry] = (),
        then: Callable[[], object] | None = None,
    ) -> None:
        """Write the record of a piece once its files are where they go, then call something."""
        write_bytes(file, data)
        if then is not None:
            then()

    def share(self, file: Path, data: bytes) -> None:
        """Write a small file that all workers need."""
        write_bytes(file, data)

    def forget(self, file: Path) -> None:
        """Remove a record."""
        file.unlink(missing_ok=True)

    def rename(self, directory: Path, entry: Entry, target: Path) -> None:
        """Give a file another name: by a link, so that until the output is whole its piece stays whole, too."""
        target.unlink(missing_ok=True)
        try:
            target.hardlink_to(directory / entry.name)
        except OSError:  # a file system without links: after an interruption the piece is made again
            (directory / entry.name).rename(target)

    def finish(self, manifest: Manifest, run: Mapping[str, Any] | None = None) -> None:
        """Turn the staged files into a dataset. All of them must be there and durable.

        Args:
            manifest: written last, atomically.
            run: facts that may differ between equal runs (timings, machine, workers), for `run.json`.
        """
        facts = {"command": self.state.command, "key": self.state.key, **(run or {})}
        write_bytes(self.staged / manifests.RUN, manifests.encode(facts))
        self.publish(manifest)
        self.discard()

    def publish(self, manifest: Manifest) -> None:
        """Make the staged files a dataset."""
        manifests.write(self.work, manifest, WHOLE)
        publish(self.path)

    def discard(self) -> None:
        """Leave nothing unfinished behind: all is done, or there is nothing that a resumed run could use."""
        remove_work(self.path)
        self.release()

    def release(self) -> None:
        """Unlock the output for others. Releasing again does no harm."""
        if self.lock is not None and self.lock.release():
            for directory in (self.staged, self.scratch, self.work, self.path):
                with suppress(OSError):
                    directory.rmdir()  # if there is nothing in it

    def __enter__(self) -> Output:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        """Unlock the output for others, however the block ends.

        Raises:
            DataError: in place of the system's error for a full disk, which names neither the output nor the way on.
        """
        self.release()
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            what = "no space left on the device" if error.errno == errno.ENOSPC else "disk quota exceeded"
            remedy = "free some space, then run the command again with --resume: what is finished is kept"
            raise DataError("disk-full", what, remedy=remedy, where=str(self.place)) from None


def _holds(files: tuple[str, Sequence[Entry]], worker: Worker) -> bool:
    """Return whether the files of a directory have the recorded sizes and checksums."""
    directory, entries = files
    worker.advance(0)
    return all(LocalPlace(directory).problem(each) is None for each in entries)


@dataclass(frozen=True)
class Pieces(Generic[Done]):
    """The pieces of one kind of an output.

    Attributes:
        output: that they are part of.
        kind: names the directory of the records.
        type: of what is recorded of a piece.
        files: directory and files of a piece, of its number and record; left out where a piece leaves only a record.
    """

    output: Output
    kind: str
    type: type[Done]
    files: Callable[[int, Done], tuple[Path, Sequence[Entry]]] = lambda number, done: (Path(), ())

    def run(
        self,
        function: Callable[[Task, Worker], Done],
        tasks: Mapping[int, Task],
        engine: Engine,
        *,
        done: Mapping[int, Done],
        keep: Callable[[Callable[[], object]], object] = lambda write: write(),
        then: Callable[[int], object] | None = None,
        on_advance: Advance | None = None,
        prepare: Callable[[], object] | None = None,
        shared: Path | None = None,
    ) -> Iterator[tuple[int, Done]]:
        """Run the pieces that are not done; yield (number, record) of each: first those done before, then as they come.

        Args:
            function, on_advance, prepare, shared: as of `Engine.run`.
            tasks: the work, by the numbers of the pieces.
            done: those that are done, with their records, such as `found` returns.
            keep: calls what writes a record, when it may be written; left out for at once.
            then: called with the number of a piece once its record is there.
        """
        for number, record in done.items():
            self.output.send(*self.files(number, record))
            if then is not None:
                keep(partial(then, number))
            yield number, record
        todo = [number for number in tasks if number not in done]
        sent = self.output.delivery(engine).sends
        results = engine.run(
            function, [tasks[number] for number in todo], on_advance=on_advance, prepare=prepare, shared=shared
        )
        with closing(results):
            for at, record in results:
                self.output.send(*self.files(todo[at], record), sent=sent)
                keep(partial(self.record, todo[at], record, then))
                yield todo[at], record

    def found(self, numbers: Iterable[int], engine: Engine) -> dict[int, Done]:
        """Return the records of the pieces that are done, after checking sizes and checksums of their files."""
        records = self.recorded(numbers)
        sound = self.output.sound({number: self.files(number, each) for number, each in records.items()}, engine)
        return {number: each for number, each in records.items() if number in sound}

    def numbers(self) -> list[int]:
        """List the numbers of the pieces that have a record."""
        return sorted(int(file.stem) for file in self.path(0).parent.glob("*.json"))

    def recorded(self, numbers: Iterable[int]) -> dict[int, Done]:
        """Return the records that exist, whatever happened to their files."""
        records = {}
        for number in numbers:
            try:
                records[number] = decode(LocalPlace(self.path(number).parent).read(self.path(number).name), self.type)
            except (FileNotFoundError, ValueError):
                continue
        return records

    def record(self, number: int, done: Done, then: Callable[[int], object] | None = None) -> None:
        """Write the record of a piece, when its files are where they go."""
        self.path(number).parent.mkdir(parents=True, exist_ok=True)
        after = None if then is None else partial(then, number)
        self.output.record(self.path(number), msgspec.json.encode(done), *self.files(number, done), after)

    def forget(self, number: int) -> None:
        """Forget that a piece is done, so that it is done again."""
        self.output.forget(self.path(number))

    def path(self, number: int) -> Path:
        """Return the path of a record."""
        return self.output.work / RECORDS / self.kind / f"{number:05d}.json"
