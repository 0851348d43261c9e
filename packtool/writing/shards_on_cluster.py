"""Shards as tasks of a cluster: each worker maps plan and order, reads what its rows need, and writes one shard."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from packtool import cluster, executor
from packtool.cluster import Cluster
from packtool.metrics import Tally
from packtool.plan import Segments
from packtool.storage.files import sync_directory
from packtool.writing.rows import PlannedRows
from packtool.writing.saved_rows import load_rows, save_rows
from packtool.writing.shards import Note, Ranges, RowWriter, Shard, write_shard
from packtool.writing.source import Tokens


class ShardTask(NamedTuple):
    """A shard: its number and its rows."""

    number: int
    first: int
    last: int


@dataclass(frozen=True)
class ShardOnWorker:
    """Writes one shard, on a worker.

    Attributes:
        rows: directory of what `save_rows` wrote: the rows, and the lengths of all documents, or None.
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

    def __call__(self, task: ShardTask) -> Note:
        """The shard, and the counts of its rows; writing it again gives the same files."""
        rows, lengths = load_rows(self.rows, self.digest)
        tally = None if lengths is None else Tally(lengths, rows.plan.sequence_length)

        def count(segments: Segments | None, tokens: Tokens) -> None:
            if tally is not None and segments is not None:
                tally.add(segments)
            executor.advance(tokens.nbytes)

        # A task whose worker was taken for dead runs twice at once: each time in a directory of its own.
        with tempfile.TemporaryDirectory(prefix=f"shard-{task.number:05d}.", dir=self.rows.parent) as attempt:
            shard = write_shard(
                Path(attempt), *task, rows, np.dtype(self.dtype), count, with_segments=self.with_segments
            )
            for entry in (shard.tokens, shard.segments, shard.segment_offsets, shard.atoms):
                if entry is not None:
                    (Path(attempt) / entry.name).replace(self.directory / entry.name)
        sync_directory(self.directory)
        return Note(shard, None if tally is None else tally.counts())


@contextmanager
def on_cluster(writer: RowWriter, rows: PlannedRows, ranges: Ranges, where: Cluster) -> Iterator[Iterator[Shard]]:
    """The shards of these ranges of rows in order, with their tallies.

    Args:
        writer: what they are written for; shards that it had finished earlier are not written again.
    """
    length = rows.plan.sequence_length
    with ThreadPoolExecutor(writer.workers, thread_name_prefix="packtool") as pool:
        found = zip(ranges, pool.map(lambda number: writer.finished(number, length), ranges), strict=True)
        shards = {number: shard for number, shard in found if shard is not None}
    todo = [ShardTask(number, *ranges[number]) for number in ranges if number not in shards]
    with tempfile.TemporaryDirectory(prefix="plan.", dir=writer.notes) as scratch:
        saved = Path(scratch).absolute() / "rows"
        saved.mkdir()
        digest = save_rows((rows, writer.lengths), saved)
        task = ShardOnWorker(saved, digest, writer.directory.absolute(), writer.dtype.str, writer.with_segments)
        shared = saved / "rows.pickle"
        results = cluster.run(task, todo, where, shared=shared, on_advance=writer.progress)

        def in_order() -> Iterator[Shard]:
            for number in ranges:
                while number not in shards:
                    at, note = next(results)
                    tally = None
                    if writer.lengths is not None and note.tally is not None:
                        tally = Tally.of(note.tally, writer.lengths, length)
                    shards[todo[at].number] = note.shard, tally
                yield shards.pop(number)

        with closing(results):
            yield in_order()
