"""Pieces of work: numbered, idempotent, and recorded when they are done. Resuming rests on them.

    unfinished/pieces/shard/00017.json     what piece 17 of this kind is: sizes and checksums of its files, and counts

A record is written last, so what has one is not done again, as long as its files are what it says. An interrupted run,
several tasks that share the work, and a cluster that lost a worker are the same here: some records are there, and some
are not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from packtool.engines import Engine, Worker
from packtool.engines.engine import Advance
from packtool.places.local import LocalPlace
from packtool.places.place import Entry
from packtool.storage.manifest import decode
from packtool.storage.output import Output
from packtool.storage.publish import RECORDS

Done = TypeVar("Done")
Task = TypeVar("Task")


@dataclass(frozen=True)
class Pieces(Generic[Done]):
    """The pieces of one kind of an output.

    Attributes:
        output: whose they are.
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
        done: Mapping[int, Done] | None = None,
        keep: Callable[[Callable[[], object]], object] = lambda write: write(),
        then: Callable[[int], object] | None = None,
        on_advance: Advance | None = None,
        prepare: Callable[[], object] | None = None,
        shared: Path | None = None,
    ) -> Iterator[tuple[int, Done]]:
        """Run the pieces that are not done; yield (number, record) of each: first those done before, then as they come.

        Args:
            function, on_advance, prepare, shared: as of `Engine.run`.
            tasks: what is to be done, by the numbers of the pieces.
            done: what `found` found of them; None to look.
            keep: calls what writes a record, when it may be written; left out for at once.
            then: called with the number of a piece once its record is there.
        """
        done = self.found(tasks, engine) if done is None else done
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
                (self.output.arrived if sent else self.output.send)(*self.files(todo[at], record))
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
