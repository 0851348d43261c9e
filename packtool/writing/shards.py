"""Write all rows of a dataset, as `pack` and every `shuffle` do with their plans and orders.

The rows of one length are a bucket, written to shards; each shard is a task, hashed and counted batch by batch.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from packtool.engines import Worker
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
from packtool.support.progress import Progress
from packtool.writing.array_files import temporary_arrays
from packtool.writing.input_check import InputCheck
from packtool.writing.memory import Budget
from packtool.writing.planned_rows import OrderedRows, PlannedRows, RowsWithoutTokens
from packtool.writing.stored_plan import StoredPlan
from packtool.writing.two_passes import PartitionContents, PartitionedRows, partition
from packtool.writing.unit_source import UnitSource

_PARTITIONS = "partitions"  # directory of the scratch files of the first pass


class Note(msgspec.Struct, frozen=True):
    """The record of a finished shard: its files, and the counts of its rows where their segments are known."""

    shard: PackedShard
    tally: TallyCounts | None


def write_shards(
    output: Output,
    sources: Sequence[UnitSource],
    shuffles: Sequence[AtomShuffle | None],
    lengths: Ints | None,
    budget: Budget,
    *,
    by_length: bool,
    shard_tokens: int,
    multiple: int,
    with_segments: bool,
    with_tokens: bool,
    checked: Iterable[MappedFile],
    label: str,
    quiet: bool,
) -> tuple[list[Bucket], list[Tally]]:
    """Write the rows of every source as a bucket. Shards that an interrupted run finished are kept.

    Args:
        sources: sources of the buckets' units. The tokens of a source that exceeds the budget move twice; the bytes of
            the shards do not depend on it.
        shuffles: shuffles of the sources' atoms; None keeps their order.
        lengths: of every document, EOS included; None if segments are not known, so that nothing is counted.
        budget: memory and engine.
        by_length: each bucket has a directory, named after its row length.
        shard_tokens: a shard closes before it would exceed this many tokens (but holds at least one row).
        multiple: pieces begin at multiples of this many tokens.
        with_segments: write the segment table.
        with_tokens: write the tokens, and their loss.
        checked: input files to hash meanwhile; empty to trust the input.
        label: of the progress bar.

    Returns:
        The buckets, and the tally of each unless nothing is counted.

    Raises:
        DataError: an input file differs from its entry in the manifest; nothing that was made of it is kept.
    """

    def write(source: UnitSource, shuffle: AtomShuffle | None) -> tuple[Bucket, Tally | None]:
        plan, engine = source.plan, budget.engine
        directory = bucket_directory(plan.sequence_length) if by_length else ""
        pieces = Pieces(output, _joined("shard", directory), Note, lambda note: note.shard.files, directory)
        shards = range(-(-plan.rows // rows_per_shard(plan, shard_tokens)))
        complete = len(pieces.recorded(shards)) == len(shards)
        in_memory = budget.holds(source) or (not with_tokens and source.index_bytes <= budget.memory)
        with nullcontext(IN_MEMORY) if in_memory else temporary_arrays(output.scratch) as arrays:
            if complete or moves_once(source, shuffle):
                rows = _moved_once(source, shuffle, arrays, with_tokens=with_tokens, sparing=not budget.holds(source))
            else:
                assert shuffle is not None
                rows = _moved_twice(output, directory, source, shuffle, arrays, budget, check, bar.advance)
            task = WriteShard(
                rows=rows,
                lengths=lengths,
                dtype=source.dtype,
                shard_tokens=shard_tokens,
                multiple=multiple,
                with_segments=with_segments,
                with_tokens=with_tokens,
                delivery=output.delivery(engine).below(directory),
            )
            done = pieces.found(shards, engine)
            for note in done.values():
                bar.advance(note.shard.rows * plan.sequence_length * source.dtype.itemsize)
            notes = dict(
                pieces.run(
                    task,
                    {number: number for number in shards},
                    engine,
                    done=done,
                    keep=check.keep,
                    then=lambda number: rows.written(*task.rows_of(number)),
                    on_advance=bar.advance,
                    work=output.scratch,
                )
            )
        source.release()
        shutil.rmtree(output.scratch / _PARTITIONS / directory, ignore_errors=True)
        in_order = [notes[number] for number in shards]
        return _bucket(plan, directory, [note.shard for note in in_order]), _total(task.tally(), in_order)

    def moves_once(source: UnitSource, shuffle: AtomShuffle | None) -> bool:
        return not with_tokens or shuffle is None or budget.holds(source)

    buckets = list(zip(sources, shuffles, strict=True))
    work = 0
    for source, shuffle in buckets:
        work += source.row_bytes
        if not moves_once(source, shuffle):
            work += source.row_bytes
    tokens = sum(source.row_bytes // source.dtype.itemsize for source in sources)
    check = InputCheck(checked, engine=budget.engine, work=output.scratch)
    with Progress(work, label, tokens=tokens, quiet=quiet) as bar, check:
        written = [write(*bucket) for bucket in buckets]
        check.require_sound()
    return [bucket for bucket, _ in written], [tally for _, tally in written if tally is not None]


def _moved_once(
    source: UnitSource, shuffle: AtomShuffle | None, arrays: Arrays, *, with_tokens: bool, sparing: bool
) -> PlannedRows:
    """Return rows whose tokens are read in their final order, or stay where they are."""
    order = None
    if shuffle is not None:
        order = shuffle.order(arrays)
    if with_tokens:
        return OrderedRows(source, order, sparing=sparing, arrays=arrays)
    if isinstance(source.plan, StoredPlan):
        source.plan.prepare(arrays)  # now, before several threads read
    return RowsWithoutTokens(source.plan, order, arrays, None if source.loss is None else source)


def _moved_twice(
    output: Output,
    directory: str,
    source: UnitSource,
    shuffle: AtomShuffle,
    arrays: Arrays,
    budget: Budget,
    check: InputCheck,
    progress: Callable[[int], object],
) -> PlannedRows:
    """Return rows whose tokens are moved to partitions on disk, and from there to their place."""
    partitions = partition(
        source,
        shuffle,
        _joined(_PARTITIONS, directory),
        output.scratch,
        lambda name: Pieces(output, _joined(name, directory), PartitionContents),
        arrays=arrays,
        budget=budget,
        progress=progress,
        input_check=check,
        delivery=output.passing(budget.engine, far=budget.in_order),
    )
    if source.plan.atom_offsets is None:
        return PartitionedRows(partitions, None)
    # Where atoms differ in size, the plan lists them all; so may the order.
    return PartitionedRows(partitions, shuffle.order(arrays))


def _total(total: Tally | None, notes: Sequence[Note]) -> Tally | None:
    """Return the tally of all rows of a bucket; None if they can't be counted."""
    for note in notes:  # in order: sums of shares depend on it
        if total is not None and note.tally is not None:
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
    lengths: Ints | None  # as in `write_shards`
    dtype: np.dtype[Any]  # type of the tokens, or of records of tokens and loss
    shard_tokens: int  # as in `write_shards`
    multiple: int  # as in `write_shards`
    with_segments: bool  # as in `write_shards`
    with_tokens: bool  # as in `write_shards`
    delivery: Delivery  # delivery of finished files to the directory of the bucket

    def rows_of(self, number: int) -> tuple[int, int]:
        """Return the rows ``first:last`` of a shard."""
        plan = self.rows.plan
        step = rows_per_shard(plan, self.shard_tokens)
        return number * step, min((number + 1) * step, plan.rows)

    def tally(self) -> Tally | None:
        """Return an empty tally; None if rows can't be counted."""
        if self.lengths is None:
            return None
        return Tally(self.lengths, self.rows.plan.sequence_length, self.multiple)

    def __call__(self, number: int, worker: Worker) -> Note:
        """Write the shard; return it, and the counts of its rows."""
        first, last = self.rows_of(number)
        tally = self.tally()
        with self.delivery.attempt(f"shard-{number:05d}.") as attempt:
            with PackedShardWriter(
                attempt,
                number,
                dtype=self.dtype,
                rows=last - first,
                sequence_length=self.rows.plan.sequence_length,
                with_segments=self.with_segments,
                with_tokens=self.with_tokens,
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
        return Note(shard, None if tally is None else tally.counts())


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
