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
from packtool.metrics import Tally
from packtool.plan import Ints, Segments
from packtool.storage.delivery import Entry
from packtool.storage.files import sync_directory
from packtool.storage.reading import problem_with
from packtool.storage.uploads import Destination
from packtool.temporary import own_directory
from packtool.writing.function_files import save
from packtool.writing.rows import PlannedRows
from packtool.writing.shards import Note, Ranges, RowWriter, Shard, files_of, write_shard
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
        rows: what is written.
        lengths: of all documents; None where segments are not known.
        scratch: directory for files that are not finished, on the file system of `directory`; not used where the worker
            sends the shard.
        directory: of the bucket.
        dtype: of the tokens.
        with_segments: write the segment table.
        destination: where the worker sends the shard; None to leave it in the directory.
    """

    rows: PlannedRows
    lengths: Ints | None
    scratch: Path
    directory: Path
    dtype: str
    with_segments: bool
    destination: Destination | None = None

    def __call__(self, task: ShardTask) -> Note:
        """The shard, and the counts of its rows; writing it again gives the same files."""
        tally = None if self.lengths is None else Tally(self.lengths, self.rows.plan.sequence_length)

        def count(segments: Segments | None, tokens: Tokens) -> None:
            if tally is not None and segments is not None:
                tally.add(segments)
            executor.advance(tokens.nbytes)

        scratch = self.scratch if self.destination is None else None
        with own_directory(scratch, f"shard-{task.number:05d}.") as attempt:
            shard = write_shard(
                attempt, *task, self.rows, np.dtype(self.dtype), count, with_segments=self.with_segments
            )
            if self.destination is not None:
                self.destination.deliver(attempt, files_of(shard), self.directory)
            else:
                for entry in files_of(shard):
                    (attempt / entry.name).replace(self.directory / entry.name)
                sync_directory(self.directory)
        return Note(shard, None if tally is None else tally.counts())


@dataclass(frozen=True)
class HoldOnWorker:
    """Holds the files of a finished shard against their sizes and checksums, on a worker.

    Attributes:
        directory: of the bucket.
    """

    directory: Path

    def __call__(self, files: Sequence[Entry]) -> bool:
        """Whether they are as they were written."""
        return all(problem_with(self.directory, each.name, each.bytes, each.xxh3_128) is None for each in files)


def _finished(writer: RowWriter, ranges: Ranges, length: int, where: Cluster) -> dict[int, Shard]:
    """The shards that an earlier run wrote: workers read them, unless they are in a store, where nobody needs to."""
    notes = {number: note for number in ranges if (note := writer.noted(number)) is not None}
    if writer.delivery.destination is not None:
        found = {number: writer.finished(number, length) for number in notes}
        return {number: shard for number, shard in found.items() if shard is not None}
    numbers, hold = list(notes), HoldOnWorker(writer.directory.absolute())
    files = [files_of(notes[number].shard) for number in numbers]
    results = cluster.run(hold, files, where, shared=writer.notes.absolute())
    return {numbers[at]: writer.kept(notes[numbers[at]], length) for at, sound in results if sound}


@contextmanager
def on_cluster(writer: RowWriter, rows: PlannedRows, ranges: Ranges, where: Cluster) -> Iterator[Iterator[Shard]]:
    """The shards of these ranges of rows in order, with their tallies.

    Args:
        writer: what they are written for; shards that it had finished earlier are not written again.
    """
    length = rows.plan.sequence_length
    shards = _finished(writer, ranges, length, where)
    for shard, _ in shards.values():
        writer.delivery.send(writer.directory, files_of(shard))
    todo = [ShardTask(number, *ranges[number]) for number in ranges if number not in shards]
    with tempfile.TemporaryDirectory(prefix="plan.", dir=writer.notes) as scratch:
        unfinished = Path(scratch).absolute()
        (unfinished / "rows").mkdir()
        task = ShardOnWorker(
            rows,
            writer.lengths,
            unfinished,
            writer.directory.absolute(),
            writer.dtype.str,
            writer.with_segments,
            writer.delivery.destination,
        )
        saved = save(task, unfinished / "rows")
        results = cluster.run(saved, todo, where, shared=saved.file, on_advance=writer.progress)

        def in_order() -> Iterator[Shard]:
            for number in ranges:
                while number not in shards:
                    at, note = next(results)
                    writer.delivery.arrived(writer.directory, files_of(note.shard))
                    tally = None
                    if writer.lengths is not None and note.tally is not None:
                        tally = Tally.of(note.tally, writer.lengths, length)
                    shards[todo[at].number] = note.shard, tally
                yield shards.pop(number)

        with closing(results):
            yield in_order()
