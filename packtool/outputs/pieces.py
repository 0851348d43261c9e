"""Work in numbered pieces: the result of a task, such as the files of a shard, and the record that says it is done.

Finished files get their final names at once, each whole or not there, from the worker that made them (`delivery.py`).
The record comes after them, sealed:

    unfinished/pieces/shard/00017.json     piece 17 of this kind: sizes and checksums of its files, and counts

A piece with a record is not done again, as long as its files are as recorded. An interrupted run and a cluster that
lost a worker are the same here: some records are there, and some are not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

import msgspec

from packtool.engines import Engine, RunOptions, Worker
from packtool.engines.engine import NO_OPTIONS
from packtool.formats import manifest as manifests
from packtool.formats.names import PIECES
from packtool.outputs.output import Output
from packtool.places.local import LocalPlace
from packtool.places.place import Entry
from packtool.support.decoding import from_json

Done = TypeVar("Done")
Task = TypeVar("Task")
_AT_ONCE = 16  # records that are read at the same time from an object store, where each takes a request


class _Record(msgspec.Struct, Generic[Done], frozen=True):
    """The record of a piece."""

    piece: str  # key of the output, kind and number, so that the record of another run is not taken for this one
    done: Done  # the contents of the record


@dataclass(frozen=True)
class Pieces(Generic[Done]):
    """The pieces of one kind of an output."""

    output: Output  # the output that the pieces are part of
    kind: str  # name of the pieces, and of the directory of their records
    type: type[Done]  # type of the contents of a record
    files: Callable[[Done], Sequence[Entry]] = lambda done: ()  # a record to the files of its piece; left out without
    directory: str = ""  # directory of the files in the output's place; "" for the place itself

    def run(
        self,
        function: Callable[[Task, Worker], Done],
        tasks: Mapping[int, Task],
        engine: Engine,
        *,
        done: Mapping[int, Done],
        keep: Callable[[Callable[[], object]], object] = lambda write: write(),
        then: Callable[[int], object] | None = None,
        options: RunOptions = NO_OPTIONS,
    ) -> Iterator[tuple[int, Done]]:
        """Run the pieces that are not done; yield (number, record) of every piece, the done pieces first.

        Args:
            function, options: see `Engine.run`.
            tasks: the work, by the numbers of the pieces.
            done: the records of done pieces, by number, as `found` returns them.
            keep: function that calls its argument, which writes a record, when it may be written; by default at once.
            then: called with the number of a piece once its record is written.
        """
        for number, record in done.items():
            if then is not None:
                keep(partial(then, number))
            yield number, record
        todo = [number for number in tasks if number not in done]
        left = [tasks[number] for number in todo]
        results = engine.run(function, left, options)
        with closing(results):
            for at, record in results:
                keep(partial(self.record, todo[at], record, then))
                yield todo[at], record

    def found(self, numbers: Iterable[int], engine: Engine) -> dict[int, Done]:
        """Return the records of the pieces whose files are as recorded, by number.

        The engine compares sizes and checksums. In an object store sizes do: it has checked every file on arrival.
        """
        records = self.recorded(numbers)
        files = {number: list(self.files(done)) for number, done in records.items()}
        place = self.output.place.below(self.directory)
        if isinstance(place, LocalPlace):
            damaged = self._damaged(place, files, engine)
        else:
            damaged = _differ(place.names(), files)
        return {number: done for number, done in records.items() if number not in damaged}

    def _damaged(self, place: LocalPlace, files: Mapping[int, Sequence[Entry]], engine: Engine) -> set[int]:
        """Return the numbers of the pieces whose files differ from their recorded sizes or checksums."""
        numbers, tasks = [], []
        for number, entries in files.items():
            if entries:
                numbers.append(number)
                tasks.append((place, entries))
        damaged: set[int] = set()
        with closing(engine.run(_sound, tasks, RunOptions(work=self.output.scratch))) as results:
            for at, sound in results:
                if not sound:
                    damaged.add(numbers[at])
        return damaged

    def numbers(self) -> list[int]:
        """List the numbers of the pieces that have a record."""
        stems = [name.removesuffix(".json") for name in self.output.place.below(f"{PIECES}/{self.kind}").names()]
        return sorted(int(stem) for stem in stems if stem.isdecimal())

    def recorded(self, numbers: Iterable[int]) -> dict[int, Done]:
        """Return the records that exist and are as they were written, even if their files are not."""
        wanted = sorted(set(numbers).intersection(self.numbers()))
        if isinstance(self.output.place, LocalPlace):
            records = list(map(self._read, wanted))
        else:
            with ThreadPoolExecutor(_AT_ONCE) as pool:
                records = list(pool.map(self._read, wanted))
        found: dict[int, Done] = {}
        for number, record in zip(wanted, records, strict=True):
            if record is not None:
                found[number] = record.done
        return found

    def _read(self, number: int) -> _Record[Done] | None:
        """Return the record of a piece; None if it is missing, damaged, or of another run."""
        try:
            raw = manifests.unsealed(self.output.place.read(self.name(number)))
            record = from_json(raw, _Record[self.type])  # type: ignore[name-defined]
        except (FileNotFoundError, ValueError):
            return None
        return record if record.piece == self._piece(number) else None

    def record(self, number: int, done: Done, then: Callable[[int], object] | None = None) -> None:
        """Write the record of a piece, once its files are in place; then call `then`.

        The record comes last: a run that is killed between the two makes the files again, and never believes a record
        of files that are not there.
        """
        self.output.place.write(self.name(number), manifests.sealed(_Record(self._piece(number), done)))
        if then is not None:
            then(number)

    def forget(self, number: int) -> None:
        """Forget that a piece is done, so that it is done again."""
        self.output.place.remove([self.name(number)])

    def _piece(self, number: int) -> str:
        return f"{self.output.state.key}/{self.kind}/{number}"

    def name(self, number: int) -> str:
        """Return the name of a record in the output's place."""
        return f"{PIECES}/{self.kind}/{number:05d}.json"


def _differ(there: Mapping[str, int], files: Mapping[int, Sequence[Entry]]) -> set[int]:
    """Return the numbers of the pieces whose files are missing or differ in size.

    Args:
        there: the size of every file in bytes, by its name.
    """
    differ: set[int] = set()
    for number, entries in files.items():
        for entry in entries:
            if there.get(entry.name) != entry.bytes:
                differ.add(number)
    return differ


def _sound(files: tuple[LocalPlace, Sequence[Entry]], worker: Worker) -> bool:
    """Return whether files have the recorded sizes and checksums."""
    place, entries = files
    worker.advance(0)  # it stops here if the run was interrupted
    return all(place.problem(each) is None for each in entries)
