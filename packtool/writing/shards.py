"""Write rows to the shards of one directory, hashed and counted batch by batch; each shard is a task."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from packtool.engines import Engine, Worker
from packtool.metrics.tally import Tally, TallyCounts
from packtool.plan import Ints, Plan, Segments
from packtool.storage.delivery import Delivery
from packtool.storage.output import Output
from packtool.storage.packed_writer import PackedShardWriter
from packtool.storage.pieces import Pieces
from packtool.storage.schema import PackedShard
from packtool.writing.input_check import InputCheck
from packtool.writing.planned_rows import PlannedRows
from packtool.writing.sharing import sent


class ShardTask(NamedTuple):
    """A shard: its number and its rows."""

    number: int
    first: int
    last: int


class Note(msgspec.Struct, frozen=True):
    """The record of a finished shard."""

    shard: PackedShard
    tally: TallyCounts | None


@dataclass(frozen=True)
class ShardForm:
    """What shards hold.

    Attributes:
        lengths: of every document, EOS included; None where segments are not known (no table, no tally).
        shard_tokens: a shard closes before it would exceed this many tokens (but holds at least one row).
        with_segments: write the segment table.
        with_tokens: write the tokens, and their loss.
    """

    lengths: Ints | None
    shard_tokens: int
    with_segments: bool = True
    with_tokens: bool = True

    def tally(self, sequence_length: int) -> Tally | None:
        """Make the tally of rows of this length; None if they can't be counted."""
        return None if self.lengths is None else Tally(self.lengths, sequence_length)


@dataclass(frozen=True)
class WriteShard:
    """Writes a shard, on whatever worker; writing it again gives the same files.

    Attributes:
        rows: what is written.
        form: what of them.
        dtype: of the tokens, or of records of tokens and loss.
        directory: of the bucket.
        scratch: directory for files that are not finished, on the file system of `directory`.
        delivery: of the shard.
    """

    rows: PlannedRows
    form: ShardForm
    dtype: np.dtype[Any]
    directory: Path
    scratch: Path
    delivery: Delivery

    def __call__(self, task: ShardTask, worker: Worker) -> Note:
        """Write the shard; return it, and the counts of its rows."""
        length, (number, first, last) = self.rows.plan.sequence_length, task
        tally = self.form.tally(length)
        with self.delivery.attempt(self.scratch, f"shard-{number:05d}.") as attempt:
            with PackedShardWriter(
                attempt,
                number,
                dtype=self.dtype,
                rows=last - first,
                sequence_length=length,
                with_segments=self.form.with_segments,
                with_tokens=self.form.with_tokens,
            ) as writer:
                for segments, tokens, loss in self.rows.batches(first, last):
                    if tally is not None and segments is not None:
                        tally.add(segments)
                        if loss is not None:
                            tally.add_loss(segments, loss)
                    worker.advance(_bytes_of(segments, tokens, self.dtype))
                    writer.add(tokens, segments, loss)
                worker.give_way()
                shard = writer.close(self.rows.atoms(first, last))
            self.delivery.deliver(attempt, shard.files, self.directory)
        return Note(shard, None if tally is None else tally.counts())


@dataclass(frozen=True)
class RowWriter:
    """Writes rows to the shards of one directory.

    Attributes:
        output: where to.
        bucket: directory of the bucket in it; "" for the output itself.
        form: what shards hold.
        dtype: of the tokens, or of records of tokens and loss.
        engine: writes the shards, or its share of them.
        progress: told how many bytes of tokens were written.
        check: whether the input is sound: until that is known, no shard counts as finished.
        first_piece: number of the first shard among the pieces that are shared out.
    """

    output: Output
    bucket: str
    form: ShardForm
    dtype: np.dtype[Any]
    engine: Engine
    progress: Callable[[int], object]
    check: InputCheck
    first_piece: int = 0

    @property
    def directory(self) -> Path:
        """For the shards, until the output is whole."""
        return self.output.staged / self.bucket

    @property
    def pieces(self) -> Pieces[Note]:
        """The shards as pieces of the output."""
        kind = f"shard/{self.bucket}" if self.bucket else "shard"
        return Pieces(self.output, kind, Note, lambda _, note: (self.directory, note.shard.files))

    def write(self, rows: PlannedRows) -> tuple[list[PackedShard], Tally | None]:
        """Write all rows of this run's share; return its shards in order and the tally of their rows."""
        self.directory.mkdir(parents=True, exist_ok=True)
        ranges, share = self._ranges(rows.plan), self.engine.share
        tasks = {
            number: ShardTask(number, first, last)
            for number, (first, last) in ranges.items()
            if share is None or share.has(self.first_piece + number)
        }
        done = self._found(tasks, rows.plan.sequence_length)
        task = WriteShard(
            rows,
            self.form,
            self.dtype,
            self.directory.absolute(),
            self.output.scratch.absolute(),
            self.output.delivery(self.engine),
        )
        with sent(task, self.engine, self.output.scratch) as (function, shared):
            notes = dict(
                self.pieces.run(
                    function,
                    tasks,
                    self.engine,
                    done=done,
                    keep=self.check.keep,
                    then=lambda number: rows.written(*ranges[number]),
                    on_advance=self.progress,
                    shared=shared,
                )
            )
        return self._sum(notes, rows.plan.sequence_length)

    def collect(self, plan: Plan) -> tuple[list[PackedShard], Tally | None, list[int]]:
        """Collect the shards that tasks wrote, the tally of their rows, and the pieces that are missing or damaged."""
        numbers = self._ranges(plan)
        done = self._found(numbers, plan.sequence_length)
        missing = [self.first_piece + number for number in numbers if number not in done]
        return *self._sum(done, plan.sequence_length), missing

    def count(self, plan: Plan) -> int:
        """Count the shards in all."""
        return len(self._ranges(plan))

    def complete(self, plan: Plan) -> bool:
        """Return whether an earlier run wrote all shards."""
        numbers = self._ranges(plan)
        return len(self.pieces.recorded(numbers)) == len(numbers)

    def _ranges(self, plan: Plan) -> dict[int, tuple[int, int]]:
        """List the rows of each shard."""
        step = max(1, self.form.shard_tokens // plan.sequence_length)
        return dict(enumerate((first, min(first + step, plan.rows)) for first in range(0, plan.rows, step)))

    def _found(self, numbers: Iterable[int], sequence_length: int) -> dict[int, Note]:
        """Find the shards that an earlier run or another task wrote, and that are as they were written."""
        done = self.pieces.found(numbers, self.engine)
        for note in done.values():
            self.progress(note.shard.rows * sequence_length * self.dtype.itemsize)
        return done

    def _sum(self, notes: Mapping[int, Note], sequence_length: int) -> tuple[list[PackedShard], Tally | None]:
        """Return shards in order, and the tally of their rows; None if rows can't be counted."""
        total = self.form.tally(sequence_length)
        in_order = [notes[number] for number in sorted(notes)]
        for note in in_order:  # sums of shares depend on the order
            if total is not None and note.tally is not None:
                total.include(note.tally)
        return [note.shard for note in in_order], total


def _bytes_of(segments: Segments | None, tokens: npt.NDArray[Any] | None, dtype: np.dtype[Any]) -> int:
    """Count the bytes of the tokens of some rows, whether they are there or not."""
    if tokens is not None:
        return tokens.size * dtype.itemsize
    return 0 if segments is None else int(segments.length.sum()) * dtype.itemsize
