"""Shards as tasks of a cluster: each worker maps plan and order, reads what its rows need, and writes one shard."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from packtool import cluster, executor
from packtool.cluster import Cluster
from packtool.storage.files import sync_directory
from packtool.storage.manifest import PackedShard
from packtool.writing.rows import PlannedRows
from packtool.writing.saved_rows import load_rows, save_rows
from packtool.writing.shards import RowWriter, Shard, write_shard


class ShardTask(NamedTuple):
    """A shard: its number and its rows."""

    number: int
    first: int
    last: int


@dataclass(frozen=True)
class ShardOnWorker:
    """Writes one shard, on a worker.

    Attributes:
        rows: directory of what `save_rows` wrote.
        digest: of it.
        directory: of the bucket.
        dtype: of the tokens.
        with_segments: write the segment table.
    """

    rows: Path
    digest: str
    directory: Path
    dtype: str
    with_segments: bool

    def __call__(self, task: ShardTask) -> PackedShard:
        """The shard; writing it again gives the same files."""
        rows = load_rows(self.rows, self.digest)
        # A task whose worker was taken for dead runs twice at once: each time in a directory of its own.
        with tempfile.TemporaryDirectory(prefix=f"shard-{task.number:05d}.", dir=self.rows.parent) as attempt:
            shard = write_shard(
                Path(attempt),
                *task,
                rows,
                np.dtype(self.dtype),
                lambda _, tokens: executor.advance(tokens.nbytes),
                with_segments=self.with_segments,
            )
            for entry in (shard.tokens, shard.segments, shard.segment_offsets, shard.atoms):
                if entry is not None:
                    (Path(attempt) / entry.name).replace(self.directory / entry.name)
        sync_directory(self.directory)
        return shard


@contextmanager
def on_cluster(
    writer: RowWriter, rows: PlannedRows, ranges: Sequence[tuple[int, int]], where: Cluster
) -> Iterator[Iterator[Shard]]:
    """The shards of these ranges of rows in order, with their tallies.

    Args:
        writer: what they are written for; shards that it had finished earlier are not written again.
    """
    length = rows.plan.sequence_length
    done = {number: writer.finished(number, length) for number in range(len(ranges))}
    shards = {number: shard for number, shard in done.items() if shard is not None}
    todo = [ShardTask(number, *ranges[number]) for number in range(len(ranges)) if number not in shards]
    with tempfile.TemporaryDirectory(prefix="plan.", dir=writer.notes) as scratch:
        saved = Path(scratch).absolute() / "rows"
        saved.mkdir()
        task = ShardOnWorker(
            saved, save_rows(rows, saved), writer.directory.absolute(), writer.dtype.str, writer.with_segments
        )
        shared = saved / "rows.pickle"
        results = cluster.run(task, todo, where, shared=shared, on_advance=writer.progress)

        def in_order() -> Iterator[Shard]:
            for number in range(len(ranges)):
                while number not in shards:
                    at, shard = next(results)
                    shards[todo[at].number] = shard, writer.count(shard, length)
                yield shards.pop(number)

        with closing(results):
            yield in_order()
