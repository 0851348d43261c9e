"""Write all rows of a dataset, bucket by bucket: what `pack` and every `shuffle` do with their plans and orders."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from packtool.arrays import IN_MEMORY, Arrays
from packtool.engines import Share
from packtool.metrics.tally import Tally
from packtool.plan import Plan
from packtool.progress import Progress
from packtool.shuffling.atom import AtomShuffle
from packtool.storage.output import Output
from packtool.storage.pieces import Pieces
from packtool.storage.publish import STATE
from packtool.storage.reading import MappedFile
from packtool.storage.schema import Bucket, PackedShard
from packtool.writing.input_check import Checked, InputCheck, unchecked
from packtool.writing.memory import Budget
from packtool.writing.planned_rows import OrderedRows, PlannedRows, RowsWithoutTokens
from packtool.writing.shards import RowWriter, ShardForm
from packtool.writing.sharing import temporary_arrays
from packtool.writing.source import Source
from packtool.writing.stored_plan import StoredPlan
from packtool.writing.two_passes import PartitionContents, PartitionedRows, partition


@dataclass(frozen=True)
class BucketJob:
    """The rows of one length that are to be written.

    Attributes:
        directory: of the bucket, in the output; "" for the output itself.
        source: where their units are.
        shuffle: of the plan's atoms; None keeps their order.
    """

    directory: str
    source: Source
    shuffle: AtomShuffle | None


@dataclass(frozen=True)
class Written:
    """What became of the buckets.

    Attributes:
        buckets: what the manifest says of each.
        tallies: of each one whose segments are known.
        pieces: input files that are checked and shards that are written, in all.
        missing: those that no task has done, where this run merges what tasks did.
    """

    buckets: list[Bucket]
    tallies: list[Tally]
    pieces: int
    missing: list[int]


@dataclass(frozen=True)
class BucketWriter:
    """Writes the buckets of one dataset.

    Attributes:
        output: where to; what an interrupted run finished there is kept.
        form: what shards hold.
        budget: memory and engine. A source that exceeds it moves twice; the bytes do not depend on it. Where the engine
            does a share of the pieces, each token moves once, since no task may wait for the others.
    """

    output: Output
    form: ShardForm
    budget: Budget

    @property
    def _share(self) -> Share | None:
        return self.budget.engine.share

    def write(self, jobs: Sequence[BucketJob], files: Iterable[MappedFile], label: str, *, quiet: bool) -> Written:
        """Write all buckets, or this run's share of them.

        Args:
            files: that the sources read, to be checked meanwhile; none to trust them.
            label: of the progress bar.

        Raises:
            DataError: a file is not what its manifest says.
        """
        inputs, share = dict(enumerate(files)), self._share
        pieces = len(inputs)
        buckets, tallies = [], []
        missing = unchecked(self._checks, pieces) if share is not None and share.merges else []
        tokens = sum(job.source.row_bytes // job.source.dtype.itemsize for job in jobs)
        with Progress(self._work(jobs), label, tokens=tokens, quiet=quiet) as bar, self._check(inputs) as check:
            for job in jobs:
                engine, dtype = self.budget.engine, job.source.dtype
                writer = RowWriter(self.output, job.directory, self.form, dtype, engine, bar.advance, check, pieces)
                if share is not None and share.merges:
                    shards, tally, lacking = writer.collect(job.source.plan)
                    missing += lacking
                else:
                    shards, tally = self._write(job, writer)
                buckets.append(_described(job.directory, job.source.plan, shards))
                tallies += [] if tally is None else [tally]
                pieces += writer.count(job.source.plan)
            check.require_sound()
        return Written(buckets, tallies, pieces, missing)

    @property
    def _checks(self) -> Pieces[Checked]:
        return Pieces(self.output, "input", Checked)

    def _check(self, inputs: Mapping[int, MappedFile]) -> InputCheck:
        if (share := self._share) is not None:
            here = {number: file for number, file in inputs.items() if share.has(number)}
            return InputCheck(here, pieces=self._checks)
        return InputCheck(inputs, engine=self.budget.engine, shared=(self.output.work / STATE).absolute())

    def _work(self, jobs: Sequence[BucketJob]) -> int:
        """Count the bytes of tokens that are moved; for one of several tasks, about."""
        work = sum(job.source.row_bytes * (1 if self._moves_once(job) else 2) for job in jobs)
        return work if self._share is None or self._share.merges else work // self._share.count

    def _moves_once(self, job: BucketJob) -> bool:
        if not self.form.with_tokens:
            return True
        return job.shuffle is None or self._share is not None or self.budget.holds(job.source)

    def _write(self, job: BucketJob, writer: RowWriter) -> tuple[list[PackedShard], Tally | None]:
        scratch = self.output.scratch / "partitions" / job.directory
        held = self.budget.holds(job.source)
        with nullcontext(IN_MEMORY) if held else temporary_arrays(self.output.scratch) as arrays:
            written = writer.write(self._rows(job, writer, scratch, arrays))
        job.source.release()
        shutil.rmtree(scratch, ignore_errors=True)
        return written

    def _rows(self, job: BucketJob, writer: RowWriter, scratch: Path, arrays: Arrays) -> PlannedRows:
        """Return the rows in their final order, written in one pass or two."""
        source, shuffle = job.source, job.shuffle
        if shuffle is None or self._moves_once(job) or writer.complete(source.plan):
            order = None if shuffle is None else shuffle.order(arrays)
            if not self.form.with_tokens:
                if isinstance(source.plan, StoredPlan):
                    source.plan.prepare(arrays)  # now, before several threads read
                return RowsWithoutTokens(source.plan, order, arrays, None if source.loss is None else source)
            return OrderedRows(source, order, sparing=not self.budget.holds(source), arrays=arrays)
        partitions = partition(
            source,
            shuffle,
            scratch,
            lambda name: Pieces(self.output, f"{name}/{job.directory}", PartitionContents),
            arrays=arrays,
            budget=self.budget,
            progress=writer.progress,
            input_check=writer.check,
            delivery=self.output.delivery(self.budget.engine, far=self.budget.in_order),
        )
        # Where atoms differ in size, the plan lists them all; so may the order.
        return PartitionedRows(partitions, None if source.plan.atom_offsets is None else shuffle.order(arrays))


def _described(directory: str, plan: Plan, shards: list[PackedShard]) -> Bucket:
    """Describe the rows of a plan for the manifest."""
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
