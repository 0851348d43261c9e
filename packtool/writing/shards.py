"""Rows to the shards of one directory: written, hashed and counted batch by batch, each shard a task of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from math import prod
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import msgspec
import numpy as np

from packtool.engines import Engine, Worker
from packtool.metrics import Tally, TallyCounts
from packtool.plan import Ints, Plan
from packtool.storage.delivery import Delivery, Entry
from packtool.storage.files import FileEntry, sync_directory
from packtool.storage.manifest import PackedShard
from packtool.storage.packed_writer import PackedShardWriter
from packtool.storage.reading import decode, problem_with, read_file
from packtool.storage.uploads import Destination
from packtool.temporary import own_directory
from packtool.writing.function_files import sent
from packtool.writing.input_check import InputCheck
from packtool.writing.rows import PlannedRows

Ranges: TypeAlias = dict[int, tuple[int, int]]
"""The rows of shards, by their number."""


class ShardTask(NamedTuple):
    """A shard: its number and its rows."""

    number: int
    first: int
    last: int


class Note(msgspec.Struct, frozen=True):
    """What is remembered of a finished shard."""

    shard: PackedShard
    tally: TallyCounts | None


@dataclass(frozen=True)
class WriteShard:
    """Writes a shard, on whatever worker; writing it again gives the same files.

    Attributes:
        rows: what is written.
        lengths: of all documents; None where segments are not known.
        dtype: of the tokens.
        with_segments: write the segment table.
        directory: of the bucket.
        scratch: directory for files that are not finished, on the file system of `directory`; None for a disk of the
            worker, which sends them.
        destination: where the worker sends the shard; None to leave it in the directory.
    """

    rows: PlannedRows
    lengths: Ints | None
    dtype: str
    with_segments: bool
    directory: Path
    scratch: Path | None
    destination: Destination | None = None

    def __call__(self, task: ShardTask, worker: Worker) -> Note:
        """The shard, and the counts of its rows."""
        length, (number, first, last) = self.rows.plan.sequence_length, task
        tally = None if self.lengths is None else Tally(self.lengths, length)
        with own_directory(self.scratch, f"shard-{number:05d}.") as attempt:
            shape = {"rows": last - first, "sequence_length": length}
            with PackedShardWriter(
                attempt, number, dtype=np.dtype(self.dtype), **shape, with_segments=self.with_segments
            ) as writer:
                for segments, tokens in self.rows.batches(first, last):
                    if tally is not None and segments is not None:
                        tally.add(segments)
                    worker.advance(tokens.nbytes)
                    writer.add(tokens, segments)
                worker.give_way()
                shard = writer.close(self.rows.atoms(first, last))
            if self.destination is not None:
                self.destination.deliver(attempt, files_of(shard), self.directory)
            else:
                for entry in files_of(shard):
                    (attempt / entry.name).replace(self.directory / entry.name)
                sync_directory(self.directory)
        return Note(shard, None if tally is None else tally.counts())


@dataclass(frozen=True)
class HoldFiles:
    """Holds the files of a finished shard against their sizes and checksums.

    Attributes:
        directory: of the bucket.
    """

    directory: Path

    def __call__(self, files: Sequence[Entry], worker: Worker) -> bool:
        """Whether they are as they were written."""
        return all(problem_with(self.directory, each.name, each.bytes, each.xxh3_128) is None for each in files)


@dataclass(frozen=True)
class RowWriter:
    """Writes rows to the shards of one directory.

    Attributes:
        directory: of the bucket.
        dtype: of the tokens.
        shard_tokens: a shard closes before it would exceed this many tokens (but holds at least one row).
        lengths: of every document, EOS included; None where segments are not known (no table, no tally).
        with_segments: write the segment table.
        engine: writes the shards, or its share of them.
        progress: told how many bytes of tokens were written.
        notes: directory for notes on finished shards: a shard that has one there is not written again.
        check: whether the input is sound: until that is known, no note is written.
        delivery: where finished shards and their notes go.
        first_piece: number of the first shard among the pieces that are shared out.
    """

    directory: Path
    dtype: np.dtype[Any]
    shard_tokens: int
    lengths: Ints | None
    with_segments: bool
    engine: Engine
    progress: Callable[[int], object]
    notes: Path
    check: InputCheck
    delivery: Delivery = field(default_factory=Delivery)
    first_piece: int = 0

    def write(self, rows: PlannedRows) -> tuple[list[PackedShard], Tally | None]:
        """Write all rows of this run's share; return its shards in order and the tally of their rows."""
        self.directory.mkdir(parents=True, exist_ok=True)
        self.notes.mkdir(parents=True, exist_ok=True)
        ranges, length = self._ranges(rows.plan), rows.plan.sequence_length
        if (share := self.engine.share) is not None:
            ranges = {number: each for number, each in ranges.items() if share.has(self.first_piece + number)}
        done = self._finished(ranges)
        for number, note in done.items():
            self.delivery.send(self.directory, files_of(note.shard))
            self._keep(rows, number, note, *ranges[number])
        todo = [ShardTask(number, *ranges[number]) for number in ranges if number not in done]
        far = None if self.engine.shares_memory else self.delivery.destination
        task = WriteShard(
            rows,
            self.lengths,
            self.dtype.str,
            self.with_segments,
            self.directory.absolute(),
            self.notes.absolute() if far is None else None,
            far,
        )
        with (
            sent(task, self.engine, self.notes) as (function, shared),
            closing(self.engine.run(function, todo, on_advance=self.progress, shared=shared)) as results,
        ):
            for at, note in results:
                number, first, last = todo[at]
                if far is None:
                    self.delivery.send(self.directory, files_of(note.shard))
                else:
                    self.delivery.arrived(self.directory, files_of(note.shard))
                done[number] = note
                self._keep(rows, number, note, first, last)
        return self._sum([done[number] for number in ranges], length)

    def collect(self, plan: Plan) -> tuple[list[PackedShard], Tally | None, list[int]]:
        """The shards that tasks wrote, the tally of their rows, and the pieces that are missing or damaged."""
        ranges = self._ranges(plan)
        done = self._finished(ranges)
        missing = [self.first_piece + number for number in ranges if number not in done]
        return *self._sum([done[number] for number in sorted(done)], plan.sequence_length), missing

    def count(self, plan: Plan) -> int:
        """How many shards there are in all."""
        return len(self._ranges(plan))

    def complete(self, plan: Plan) -> bool:
        """Whether an earlier run wrote all shards."""
        return all(self._note(number).exists() for number in self._ranges(plan))

    def _ranges(self, plan: Plan) -> Ranges:
        """The rows of each shard."""
        step = max(1, self.shard_tokens // plan.sequence_length)
        return dict(enumerate((first, min(first + step, plan.rows)) for first in range(0, plan.rows, step)))

    def _sum(self, notes: Sequence[Note], sequence_length: int) -> tuple[list[PackedShard], Tally | None]:
        """Shards, and the tally of their rows; None where rows can't be counted. Sums depend on the order."""
        total = None if self.lengths is None else Tally(self.lengths, sequence_length)
        for note in notes:
            if total is not None and self.lengths is not None and note.tally is not None:
                total += Tally.of(note.tally, self.lengths, sequence_length)
        return [note.shard for note in notes], total

    def _finished(self, ranges: Ranges) -> dict[int, Note]:
        """The shards that an earlier run wrote, and that are as it wrote them."""
        notes = {number: note for number in ranges if (note := self._noted(number)) is not None}
        if self.delivery.destination is not None:
            sound = [n for n, note in notes.items() if self._held(files_of(note.shard))]
        else:
            numbers, files = list(notes), [files_of(note.shard) for note in notes.values()]
            hold = HoldFiles(self.directory.absolute())
            shared = None if self.engine.shares_memory else self.notes.absolute()
            sound = [numbers[at] for at, whole in self.engine.run(hold, files, shared=shared) if whole]
        for number in sound:
            self.progress(prod(notes[number].shard.tokens.shape) * self.dtype.itemsize)
        return {number: notes[number] for number in sound}

    def _held(self, files: Sequence[Entry]) -> bool:
        return all(self.delivery.holds(self.directory, entry) for entry in files)

    def _noted(self, number: int) -> Note | None:
        """What an earlier run took note of."""
        try:
            return decode(read_file(self._note(number)), Note)
        except (FileNotFoundError, ValueError):
            return None

    def _keep(self, rows: PlannedRows, number: int, note: Note, first: int, last: int) -> None:
        """Take note of a shard as soon as the input is known to be sound, so that a resumed run has it."""
        self.check.keep(partial(self._take_note, rows, number, note, first, last))

    def _take_note(self, rows: PlannedRows, number: int, note: Note, first: int, last: int) -> None:
        self.delivery.settle(self.directory, files_of(note.shard))
        self.delivery.record(self._note(number), msgspec.json.encode(note))
        rows.written(first, last)

    def _note(self, number: int) -> Path:
        return self.notes / f"shard-{number:05d}.json"


def files_of(shard: PackedShard) -> list[FileEntry]:
    """The files of a shard."""
    found = (shard.tokens, shard.segments, shard.segment_offsets, shard.atoms)
    return [entry for entry in found if entry is not None]
