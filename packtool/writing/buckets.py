"""All rows of a dataset, bucket by bucket: what `pack` and every `shuffle` do once they know plans and orders."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from packtool.metrics import Tally
from packtool.plan import Ints, Plan
from packtool.progress import Progress
from packtool.shuffling.atom import AtomShuffle
from packtool.shuffling.permutation import order_by
from packtool.storage.manifest import Bucket, PackedShard
from packtool.storage.output import Output
from packtool.storage.reading import MappedFile
from packtool.writing.first_pass import partition
from packtool.writing.input_check import InputCheck
from packtool.writing.memory import Budget
from packtool.writing.rows import OrderedRows, PlannedRows
from packtool.writing.second_pass import PartitionedRows
from packtool.writing.shards import RowWriter
from packtool.writing.shards_on_cluster import on_cluster
from packtool.writing.source import Source


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
class BucketWriter:
    """Writes the buckets of one dataset.

    Attributes:
        output: where to; what an interrupted run finished there is kept.
        lengths: of every document, EOS included; None where segments are not known.
        shard_tokens: a shard closes before it would exceed this many tokens.
        with_segments: write the segment table.
        budget: memory and threads. A source that exceeds it moves twice; the bytes do not depend on it.
    """

    output: Output
    lengths: Ints | None
    shard_tokens: int
    with_segments: bool
    budget: Budget

    def write(
        self, jobs: Sequence[BucketJob], files: Iterable[MappedFile], label: str, *, quiet: bool
    ) -> tuple[list[Bucket], list[Tally]]:
        """Write all buckets.

        Args:
            files: that the sources read, to be checked meanwhile; none to trust them.
            label: of the progress bar.

        Returns:
            What the manifest says of each bucket, and the tally of each one whose segments are known.

        Raises:
            DataError: a file is not what its manifest says.
        """
        buckets, tallies = [], []
        tokens = sum(job.source.row_bytes // job.source.dtype.itemsize for job in jobs)
        with Progress(sum(map(self._work, jobs)), label, tokens=tokens, quiet=quiet) as bar, InputCheck(files) as check:
            for job in jobs:
                shards, tally = self._write(job, check, bar.advance)
                buckets.append(_described(job.directory, job.source.plan, shards))
                tallies += [] if tally is None else [tally]
            check.require_sound()
        return buckets, tallies

    def _work(self, job: BucketJob) -> int:
        """Bytes of tokens that are moved."""
        return job.source.row_bytes * (1 if self._moves_once(job) else 2)

    def _moves_once(self, job: BucketJob) -> bool:
        return job.shuffle is None or self.budget.cluster is not None or self.budget.holds(job.source)

    def _write(
        self, job: BucketJob, check: InputCheck, progress: Callable[[int], object]
    ) -> tuple[list[PackedShard], Tally | None]:
        scratch, cluster = self.output.work / "partitions" / job.directory, self.budget.cluster
        writer = RowWriter(
            directory=self.output.staged / job.directory,
            dtype=job.source.dtype,
            shard_tokens=self.shard_tokens,
            lengths=self.lengths,
            with_segments=self.with_segments,
            workers=self.budget.workers,
            progress=progress,
            notes=self.output.work / "shards" / job.directory,
            check=check,
            elsewhere=None if cluster is None else partial(on_cluster, where=cluster),
        )
        written = writer.write(self._rows(job, writer, scratch))
        job.source.release()
        shutil.rmtree(scratch, ignore_errors=True)
        return written

    def _rows(self, job: BucketJob, writer: RowWriter, scratch: Path) -> PlannedRows:
        """The rows in their final order, in one pass or two."""
        source, shuffle = job.source, job.shuffle
        if shuffle is None or self._moves_once(job) or writer.complete(source.plan):
            order = None if shuffle is None else shuffle.order()
            return OrderedRows(source, order, sparing=not self.budget.holds(source))
        keys = shuffle.keys()
        partitions = partition(
            source, keys, scratch, budget=self.budget, progress=writer.progress, input_check=writer.check
        )
        # Where atoms differ in size, the plan lists them all in memory; so may the order.
        order = None if source.plan.atom_offsets is None else order_by(keys(0, source.plan.movable_atoms))
        return PartitionedRows(source, partitions, order)


def _described(directory: str, plan: Plan, shards: list[PackedShard]) -> Bucket:
    """How the manifest describes the rows of a plan."""
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
