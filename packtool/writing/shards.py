"""Write all rows of a dataset, as `pack` and every `shuffle` do with their plans and orders.

The rows of one length are a bucket, written to shards; each shard is a task, hashed and counted batch by batch.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from packtool.engines import RunOptions, Worker
from packtool.formats.names import bucket_directory
from packtool.formats.packed import PackedShardWriter
from packtool.formats.schema import Bucket, PackedShard
from packtool.outputs.delivery import Delivery
from packtool.outputs.output import Output
from packtool.outputs.pieces import Pieces
from packtool.places.place import MappedFile
from packtool.planning.arrays import IN_MEMORY, Arrays
from packtool.planning.metrics.tally import Tally, TallyCounts
from packtool.planning.plan import Ints, Plan, Segments
from packtool.planning.shuffling.atom import AtomShuffle
from packtool.rows.stored_plan import StoredPlan
from packtool.rows.unit_source import UnitSource
from packtool.support.progress import Progress
from packtool.writing.array_files import temporary_arrays
from packtool.writing.input_check import InputCheck
from packtool.writing.memory import Budget
from packtool.writing.planned_rows import OrderedRows, PlannedRows, RowsWithoutTokens
from packtool.writing.two_passes import PartitionContents, PartitionedRows, partition

_PARTITIONS = "partitions"  # directory of the scratch files of the first pass


class Note(msgspec.Struct, frozen=True):
    """The record of a finished shard: its files, and the counts of its rows where their segments are known."""

    shard: PackedShard
    tally: TallyCounts | None


@dataclass(frozen=True)
class Shards:
    """What the shards of a dataset hold, and how large they are."""

    lengths: Ints | None  # of every document, EOS included; None if segments are not known, so that nothing is counted
    shard_tokens: int  # a shard closes before it would exceed this many tokens (but holds at least one row)
    multiple: int  # pieces begin at multiples of this many tokens
    with_segments: bool  # write the segment table
    with_tokens: bool  # write the tokens, and their loss

    def rows_of(self, plan: Plan, number: int) -> tuple[int, int]:
        """Return the rows ``first:last`` of a shard."""
        step = rows_per_shard(plan, self.shard_tokens)
        return number * step, min((number + 1) * step, plan.rows)

    def tally(self, plan: Plan) -> Tally | None:
        """Return an empty tally of rows of a plan; None if they can't be counted."""
        if self.lengths is None:
            return None
        return Tally(self.lengths, plan.sequence_length, self.multiple)


def write_shards(
    output: Output,
    sources: Sequence[UnitSource],
    shuffles: Sequence[AtomShuffle | None],
    shards: Shards,
    budget: Budget,
    *,
    by_length: bool,
    checked: Iterable[MappedFile],
    label: str,
    quiet: bool,
) -> tuple[list[Bucket], list[Tally]]:
    """Write the rows of every source as a bucket. Shards that an interrupted run finished are kept.

    Args:
        sources: sources of the buckets' units. The tokens of a source that exceeds the budget move twice; the bytes of
            the shards do not depend on it.
        shuffles: shuffles of the sources' atoms; None keeps their order.
        shards: what they hold.
        budget: memory and engine.
        by_length: each bucket has a directory, named after its row length.
        checked: input files to hash meanwhile; empty to trust the input.
        label: of the progress bar.

    Returns:
        The buckets, and the tally of each unless nothing is counted.

    Raises:
        DataError: an input file differs from its entry in the manifest; nothing that was made of it is kept.
    """
    check = InputCheck(checked, engine=budget.engine, work=output.scratch)
    work = tokens = 0
    for source, shuffle in zip(sources, shuffles, strict=True):
        work += source.row_bytes
        if _moves_twice(source, shuffle, shards, budget):
            budget.partition_bits(source)  # refuses too little memory before anything is written
            work += source.row_bytes
        tokens += source.row_bytes // source.dtype.itemsize
    buckets: list[Bucket] = []
    tallies: list[Tally] = []
    with Progress(work, label, tokens=tokens, quiet=quiet) as bar, check:
        run = _Run(output, shards, budget, check, bar.advance)
        for source, shuffle in zip(sources, shuffles, strict=True):
            directory = ""
            if by_length:
                directory = bucket_directory(source.plan.sequence_length)
            notes = run.notes(source, shuffle, directory)
            buckets.append(_bucket(source.plan, directory, [note.shard for note in notes]))
            tally = shards.tally(source.plan)
            if tally is not None:
                tallies.append(_total(tally, notes))
        check.require_sound()
    return buckets, tallies


def _moves_twice(source: UnitSource, shuffle: AtomShuffle | None, shards: Shards, budget: Budget) -> bool:
    """Return whether the tokens of a source move to partitions on disk first, and from there to their place."""
    return shards.with_tokens and shuffle is not None and not budget.holds(source)


@dataclass(frozen=True)
class _Run:
    """What writing a bucket needs beside its source."""

    output: Output
    shards: Shards
    budget: Budget
    check: InputCheck
    advance: Callable[[int], object]  # counts bytes that were moved

    def notes(self, source: UnitSource, shuffle: AtomShuffle | None, directory: str) -> list[Note]:
        """Write the rows of a source to shards in a directory of the output, and return the notes of the shards."""
        plan, engine = source.plan, self.budget.engine
        pieces = Pieces(self.output, _joined("shard", directory), Note, lambda note: note.shard.files, directory)
        numbers = range(-(-plan.rows // rows_per_shard(plan, self.shards.shard_tokens)))
        complete = len(pieces.recorded(numbers)) == len(numbers)
        with self._arrays(source) as arrays:
            if _moves_twice(source, shuffle, self.shards, self.budget) and not complete:
                assert shuffle is not None
                rows = self._moved_twice(source, shuffle, directory, arrays)
            else:
                rows = self._moved_once(source, shuffle, arrays)
            task = WriteShard(rows, self.shards, source.dtype, self.output.delivery(engine).below(directory))
            done = pieces.found(numbers, engine)
            for note in done.values():
                self.advance(note.shard.rows * plan.sequence_length * source.dtype.itemsize)
            notes = dict(
                pieces.run(
                    task,
                    {number: number for number in numbers},
                    engine,
                    done=done,
                    keep=self.check.keep,
                    then=lambda number: rows.written(*self.shards.rows_of(plan, number)),
                    options=RunOptions(on_advance=self.advance, work=self.output.scratch),
                )
            )
        source.release()
        shutil.rmtree(self.output.scratch / _PARTITIONS / directory, ignore_errors=True)
        return [notes[number] for number in numbers]

    def _arrays(self, source: UnitSource) -> AbstractContextManager[Arrays]:
        """Allocate arrays as long as a source in memory, where they fit, else on disk."""
        indices_fit = not self.shards.with_tokens and source.index_bytes <= self.budget.memory
        if indices_fit or self.budget.holds(source):
            return nullcontext(IN_MEMORY)
        return temporary_arrays(self.output.scratch)

    def _moved_once(self, source: UnitSource, shuffle: AtomShuffle | None, arrays: Arrays) -> PlannedRows:
        """Return rows whose tokens are read in their final order, or stay where they are."""
        order = None
        if shuffle is not None:
            order = shuffle.order(arrays)
        if self.shards.with_tokens:
            return OrderedRows(source, order, sparing=not self.budget.holds(source), arrays=arrays)
        if isinstance(source.plan, StoredPlan):
            source.plan.prepare(arrays)  # now, before several threads read
        counted = None
        if source.loss is not None:
            counted = source
        return RowsWithoutTokens(source.plan, order, arrays, counted)

    def _moved_twice(self, source: UnitSource, shuffle: AtomShuffle, directory: str, arrays: Arrays) -> PlannedRows:
        """Return rows whose tokens are moved to partitions on disk, and from there to their place."""
        partitions = partition(
            source,
            shuffle,
            _joined(_PARTITIONS, directory),
            self.output.scratch,
            lambda name: Pieces(self.output, _joined(name, directory), PartitionContents),
            arrays=arrays,
            budget=self.budget,
            progress=self.advance,
            input_check=self.check,
            delivery=self.output.passing(self.budget.engine, far=self.budget.in_order),
        )
        if source.plan.atom_offsets is None:
            return PartitionedRows(partitions, None)
        # Where atoms differ in size, the plan lists them all; so may the order.
        return PartitionedRows(partitions, shuffle.order(arrays))


def _total(total: Tally, notes: Sequence[Note]) -> Tally:
    """Return the tally of all rows of a bucket."""
    for note in notes:  # in order: sums of shares depend on it
        if note.tally is not None:
            total.include(note.tally)
    return total


def _bucket(plan: Plan, directory: str, shards: list[PackedShard]) -> Bucket:
    """Describe a bucket for the manifest."""
    return Bucket(
        directory=directory,
        sequence_length=plan.sequence_length,
        rows=plan.rows,
        unit=plan.unit,
        units=plan.units,
        atom_units=0 if plan.atom_offsets is not None else plan.atom_units,
        last_atom_stays=plan.last_atom_stays,
        shards=shards,
    )


def rows_per_shard(plan: Plan, shard_tokens: int) -> int:
    """Return how many rows a shard holds, the last one perhaps fewer."""
    return max(1, shard_tokens // plan.sequence_length)


@dataclass(frozen=True)
class WriteShard:
    """Writes a shard, by its number, on any worker; writing it again gives the same files."""

    rows: PlannedRows  # all rows of the bucket
    shards: Shards
    dtype: np.dtype[Any]  # type of the tokens, or of records of tokens and loss
    delivery: Delivery  # delivery of finished files to the directory of the bucket

    def __call__(self, number: int, worker: Worker) -> Note:
        """Write the shard; return it, and the counts of its rows."""
        plan = self.rows.plan
        first, last = self.shards.rows_of(plan, number)
        tally = self.shards.tally(plan)
        with self.delivery.attempt(f"shard-{number:05d}.") as attempt:
            with PackedShardWriter(
                attempt,
                number,
                dtype=self.dtype,
                rows=last - first,
                sequence_length=plan.sequence_length,
                with_segments=self.shards.with_segments,
                with_tokens=self.shards.with_tokens,
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
            self.delivery.deliver(attempt, shard.files)
        if tally is None:
            return Note(shard, None)
        return Note(shard, tally.counts())


def _joined(name: str, directory: str) -> str:
    if not directory:
        return name
    return f"{name}/{directory}"


def _bytes_of(segments: Segments | None, tokens: npt.NDArray[Any] | None, dtype: np.dtype[Any]) -> int:
    """Count the bytes of the tokens of some rows, which may be left in their stores."""
    if tokens is not None:
        return tokens.size * dtype.itemsize
    if segments is None:
        return 0
    return int(segments.length.sum()) * dtype.itemsize
