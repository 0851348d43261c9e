"""Write all rows of a dataset, as `pack` and every `shuffle` do with their plans and orders.

The rows of one length are a bucket, written to shards; each shard is a task, hashed and counted batch by batch.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from packtool.arrays import IN_MEMORY, Arrays
from packtool.engines import Engine, Worker
from packtool.metrics.tally import Tally, TallyCounts
from packtool.places.place import MappedFile
from packtool.plan import Ints, Segments
from packtool.progress import Progress
from packtool.shuffling.atom import AtomShuffle
from packtool.storage.output import Delivery, Output, Pieces
from packtool.storage.packed import PackedShardWriter
from packtool.storage.publish import STATE
from packtool.storage.schema import Bucket, PackedShard
from packtool.writing.input_check import InputCheck
from packtool.writing.memory import Budget
from packtool.writing.planned_rows import OrderedRows, PlannedRows, RowsWithoutTokens
from packtool.writing.sharing import sent, temporary_arrays
from packtool.writing.source import Source
from packtool.writing.stored_plan import StoredPlan
from packtool.writing.two_passes import PartitionContents, PartitionedRows, partition


@dataclass(frozen=True)
class BucketJob:
    """The rows of one length that are to be written.

    Attributes:
        directory: of the bucket, in the output; "" for the output itself.
        source: of their units.
        shuffle: of the plan's atoms; None keeps their order.
    """

    directory: str
    source: Source
    shuffle: AtomShuffle | None


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
class Written:
    """The buckets that were written.

    Attributes:
        buckets: for the manifest.
        tallies: of each one whose segments are known.
    """

    buckets: list[Bucket]
    tallies: list[Tally]


@dataclass(frozen=True)
class BucketWriter:
    """Writes the buckets of one dataset.

    Attributes:
        output: to write to; what an interrupted run finished there is kept.
        form: of the shards.
        budget: memory and engine. A source that exceeds it moves twice; the bytes do not depend on it.
    """

    output: Output
    form: ShardForm
    budget: Budget

    def write(self, jobs: Sequence[BucketJob], files: Iterable[MappedFile], label: str, *, quiet: bool) -> Written:
        """Write all buckets.

        Args:
            files: the input, to be checked meanwhile; none to trust it.
            label: of the progress bar.

        Raises:
            DataError: a file is not what its manifest says.
        """
        buckets, tallies = [], []
        tokens = sum(job.source.row_bytes // job.source.dtype.itemsize for job in jobs)
        check = InputCheck(files, engine=self.budget.engine, shared=(self.output.work / STATE).absolute())
        with Progress(self._work(jobs), label, tokens=tokens, quiet=quiet) as bar, check:
            for job in jobs:
                shards = Shards(self.output, self.form, job, self.budget.engine, bar.advance, check)
                notes = self._write(job, shards)
                in_order = [notes[number] for number in sorted(notes)]
                buckets.append(_described(job, [note.shard for note in in_order]))
                tallies += self._tallied(job, in_order)
            check.require_sound()
        return Written(buckets, tallies)

    def _work(self, jobs: Sequence[BucketJob]) -> int:
        """Count the bytes of tokens to move."""
        return sum(job.source.row_bytes * (1 if self._moves_once(job) else 2) for job in jobs)

    def _moves_once(self, job: BucketJob) -> bool:
        if not self.form.with_tokens:
            return True
        return job.shuffle is None or self.budget.holds(job.source)

    def _write(self, job: BucketJob, shards: Shards) -> dict[int, Note]:
        scratch = self.output.scratch / "partitions" / job.directory
        alone = not self.form.with_tokens and job.source.index_bytes <= self.budget.memory
        held = alone or self.budget.holds(job.source)
        with nullcontext(IN_MEMORY) if held else temporary_arrays(self.output.scratch) as arrays:
            written = shards.write(self._rows(job, shards, scratch, arrays))
        job.source.release()
        shutil.rmtree(scratch, ignore_errors=True)
        return written

    def _rows(self, job: BucketJob, shards: Shards, scratch: Path, arrays: Arrays) -> PlannedRows:
        """Return the rows in their final order, moved once or twice."""
        source, shuffle = job.source, job.shuffle
        if shuffle is None or self._moves_once(job) or shards.complete():
            order = None if shuffle is None else shuffle.order(arrays)
            if self.form.with_tokens:
                return OrderedRows(source, order, sparing=not self.budget.holds(source), arrays=arrays)
            if isinstance(source.plan, StoredPlan):
                source.plan.prepare(arrays)  # now, before several threads read
            return RowsWithoutTokens(source.plan, order, arrays, None if source.loss is None else source)
        partitions = partition(
            source,
            shuffle,
            scratch,
            lambda name: Pieces(self.output, f"{name}/{job.directory}", PartitionContents),
            arrays=arrays,
            budget=self.budget,
            progress=shards.progress,
            input_check=shards.check,
            delivery=self.output.delivery(self.budget.engine, far=self.budget.in_order),
        )
        # Where atoms differ in size, the plan lists them all; so may the order.
        return PartitionedRows(partitions, None if source.plan.atom_offsets is None else shuffle.order(arrays))

    def _tallied(self, job: BucketJob, notes: Sequence[Note]) -> list[Tally]:
        """Return the tally of all rows of a bucket; none if they can't be counted."""
        total = self.form.tally(job.source.plan.sequence_length)
        if total is None:
            return []
        for note in notes:  # in order: sums of shares depend on it
            if note.tally is not None:
                total.include(note.tally)
        return [total]


def _described(job: BucketJob, shards: list[PackedShard]) -> Bucket:
    """Describe a bucket for the manifest."""
    plan = job.source.plan
    return Bucket(
        directory=job.directory,
        sequence_length=plan.sequence_length,
        rows=plan.rows,
        unit=plan.unit,
        units=plan.units,
        atom_units=0 if plan.atom_offsets is not None else plan.atom_units,
        last_atom_stays=plan.last_atom_stays,
        shards=shards,
    )


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
class Shards:
    """The shards of one bucket.

    Attributes:
        engine: writes them.
        progress: called with the bytes of tokens that were written.
        check: until it has found the input sound, no shard counts as finished.
    """

    output: Output
    form: ShardForm
    job: BucketJob
    engine: Engine
    progress: Callable[[int], object]
    check: InputCheck

    @cached_property
    def ranges(self) -> dict[int, tuple[int, int]]:
        """The rows of each shard."""
        plan = self.job.source.plan
        step = max(1, self.form.shard_tokens // plan.sequence_length)
        return dict(enumerate((first, min(first + step, plan.rows)) for first in range(0, plan.rows, step)))

    @property
    def directory(self) -> Path:
        """Their directory until the output is whole."""
        return self.output.staged / self.job.directory

    @property
    def _pieces(self) -> Pieces[Note]:
        kind = f"shard/{self.job.directory}" if self.job.directory else "shard"
        return Pieces(self.output, kind, Note, lambda _, note: (self.directory, note.shard.files))

    def write(self, rows: PlannedRows) -> dict[int, Note]:
        """Write the shards of these rows."""
        self.directory.mkdir(parents=True, exist_ok=True)
        tasks = {number: ShardTask(number, first, last) for number, (first, last) in self.ranges.items()}
        task = WriteShard(
            rows,
            self.form,
            self.job.source.dtype,
            self.directory.absolute(),
            self.output.scratch.absolute(),
            self.output.delivery(self.engine),
        )
        done = self.found(tasks)
        with sent(task, self.engine, self.output.scratch) as (function, shared):
            return dict(
                self._pieces.run(
                    function,
                    tasks,
                    self.engine,
                    done=done,
                    keep=self.check.keep,
                    then=lambda number: rows.written(*self.ranges[number]),
                    on_advance=self.progress,
                    shared=shared,
                )
            )

    def found(self, numbers: Iterable[int]) -> dict[int, Note]:
        """Find the shards that an earlier run wrote and that have not changed since."""
        done = self._pieces.found(numbers, self.engine)
        row_bytes = self.job.source.plan.sequence_length * self.job.source.dtype.itemsize
        for note in done.values():
            self.progress(note.shard.rows * row_bytes)
        return done

    def complete(self) -> bool:
        """Return whether an earlier run wrote all of them."""
        return len(self._pieces.recorded(self.ranges)) == len(self.ranges)


@dataclass(frozen=True)
class WriteShard:
    """Writes a shard, on any worker; writing it again gives the same files.

    Attributes:
        dtype: of the tokens, or of records of tokens and loss.
        directory: of the bucket.
        scratch: directory for unfinished files, on the file system of `directory`.
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


def _bytes_of(segments: Segments | None, tokens: npt.NDArray[Any] | None, dtype: np.dtype[Any]) -> int:
    """Count the bytes of the tokens of some rows, which may be left in their stores."""
    if tokens is not None:
        return tokens.size * dtype.itemsize
    return 0 if segments is None else int(segments.length.sum()) * dtype.itemsize
