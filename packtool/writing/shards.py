"""Rows to the shards of one directory: written, hashed and counted batch by batch, each shard a task of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from math import prod
from pathlib import Path
from threading import Semaphore
from typing import Any, TypeAlias

import msgspec
import numpy as np

from packtool.metrics import Tally, TallyCounts
from packtool.plan import Ints, Plan, Segments
from packtool.share import Share
from packtool.storage.delivery import Delivery
from packtool.storage.files import FileEntry
from packtool.storage.manifest import PackedShard
from packtool.storage.packed_writer import PackedShardWriter
from packtool.storage.reading import decode, read_file
from packtool.writing.input_check import InputCheck
from packtool.writing.rows import PlannedRows
from packtool.writing.source import Tokens
from packtool.writing.threads import Check, in_threads

CLOSING = 2
"""Shards that may wait for the disk while as many as there are workers are being filled."""

Shard: TypeAlias = tuple[PackedShard, Tally | None]
Ranges: TypeAlias = dict[int, tuple[int, int]]
"""The rows of shards, by their number."""
Elsewhere: TypeAlias = "Callable[[RowWriter, PlannedRows, Ranges], AbstractContextManager[Iterator[Shard]]]"
"""Writes the shards of these rows, and gives them in order."""


class Note(msgspec.Struct, frozen=True):
    """What is remembered of a finished shard."""

    shard: PackedShard
    tally: TallyCounts | None


@dataclass(frozen=True)
class RowWriter:
    """Writes rows to the shards of one directory.

    Attributes:
        directory: of the bucket.
        dtype: of the tokens.
        shard_tokens: a shard closes before it would exceed this many tokens (but holds at least one row).
        lengths: of every document, EOS included; None where segments are not known (no table, no tally).
        with_segments: write the segment table.
        workers: threads.
        progress: told how many bytes of tokens were written.
        notes: directory for notes on finished shards: a shard that has one there is not written again.
        check: whether the input is sound: until that is known, no note is written.
        delivery: where finished shards and their notes go.
        elsewhere: has the shards written by other processes; None for threads of this one.
        share: of the shards that this run does; None for all.
        first_piece: number of the first shard among the pieces that are shared out.
    """

    directory: Path
    dtype: np.dtype[Any]
    shard_tokens: int
    lengths: Ints | None
    with_segments: bool
    workers: int
    progress: Callable[[int], object]
    notes: Path
    check: InputCheck
    delivery: Delivery = field(default_factory=Delivery)
    elsewhere: Elsewhere | None = None
    share: Share | None = None
    first_piece: int = 0

    def write(self, rows: PlannedRows) -> tuple[list[PackedShard], Tally | None]:
        """Write all rows of this run's share; return its shards in order and the tally of their rows."""
        self.directory.mkdir(parents=True, exist_ok=True)
        self.notes.mkdir(parents=True, exist_ok=True)
        ranges = {number: rows for number, rows in self._ranges(rows.plan).items() if self._has(number)}
        total = self.tally(rows.plan.sequence_length)
        shards = []
        with self._written(rows, ranges) as written:
            for (number, (first, last)), (shard, tally) in zip(ranges.items(), written, strict=True):
                shards.append(shard)
                note = Note(shard, None if tally is None else tally.counts())
                self.check.keep(partial(self._finish, rows, number, note, first, last))
                if total is not None and tally is not None:
                    total += tally
        return shards, total

    def collect(self, plan: Plan) -> tuple[list[PackedShard], Tally | None, list[int]]:
        """The shards that tasks wrote, the tally of their rows, and the pieces that are missing or damaged."""
        length, numbers = plan.sequence_length, self._ranges(plan)
        total = self.tally(length)
        shards, missing = [], []
        with in_threads(lambda number, _: self.finished(number, length), numbers, workers=self.workers) as found:
            for number, each in zip(numbers, found, strict=True):
                if each is None:
                    missing.append(self.first_piece + number)
                    continue
                shards.append(each[0])
                if total is not None and each[1] is not None:
                    total += each[1]
        return shards, total, missing

    def count(self, plan: Plan) -> int:
        """How many shards there are in all."""
        return len(self._ranges(plan))

    def _has(self, number: int) -> bool:
        return self.share is None or self.share.has(self.first_piece + number)

    def _written(self, rows: PlannedRows, ranges: Ranges) -> AbstractContextManager[Iterator[Shard]]:
        """The shards in order, as they are written here or by the workers of a cluster."""
        if self.elsewhere is not None:
            return self.elsewhere(self, rows, ranges)
        # A shard that is being closed waits for the disk, not for a processor: meanwhile others may begin.
        busy = Semaphore(self.workers)
        return in_threads(
            lambda number, check: self._shard(busy, check, rows, number, *ranges[number]),
            ranges,
            workers=self.workers + CLOSING,
        )

    def complete(self, plan: Plan) -> bool:
        """Whether an earlier run wrote all shards."""
        return all(self._note(number).exists() for number in self._ranges(plan))

    def _ranges(self, plan: Plan) -> Ranges:
        """The rows of each shard."""
        step = max(1, self.shard_tokens // plan.sequence_length)
        return dict(enumerate((first, min(first + step, plan.rows)) for first in range(0, plan.rows, step)))

    def tally(self, sequence_length: int) -> Tally | None:
        """Nothing counted yet; None where rows can't be counted."""
        return None if self.lengths is None else Tally(self.lengths, sequence_length)

    def _shard(self, busy: Semaphore, check: Check, rows: PlannedRows, number: int, first: int, last: int) -> Shard:
        sequence_length = rows.plan.sequence_length
        finished = self.finished(number, sequence_length)
        if finished is not None:
            self.delivery.send(self.directory, files_of(finished[0]))
            return finished
        tally = self.tally(sequence_length)

        def count(segments: Segments | None, tokens: Tokens) -> None:
            check()
            if tally is not None and segments is not None:
                tally.add(segments)
            self.progress(tokens.nbytes)

        shard = write_shard(
            self.directory,
            number,
            first,
            last,
            rows,
            self.dtype,
            count,
            with_segments=self.with_segments,
            busy=busy,
        )
        self.delivery.send(self.directory, files_of(shard))
        return shard, tally

    def _finish(self, rows: PlannedRows, number: int, note: Note, first: int, last: int) -> None:
        """Take note of a shard, so that a resumed run has it."""
        self.delivery.settle(self.directory, files_of(note.shard))
        self.delivery.record(self._note(number), msgspec.json.encode(note))
        rows.written(first, last)

    def _note(self, number: int) -> Path:
        return self.notes / f"shard-{number:05d}.json"

    def finished(self, number: int, sequence_length: int) -> Shard | None:
        """A shard that an earlier run wrote, and its tally; None where it is not as written."""
        note = self.noted(number)
        if note is None or not all(self.delivery.holds(self.directory, entry) for entry in files_of(note.shard)):
            return None
        return self.kept(note, sequence_length)

    def noted(self, number: int) -> Note | None:
        """What an earlier run took note of."""
        try:
            return decode(read_file(self._note(number)), Note)
        except (FileNotFoundError, ValueError):
            return None

    def kept(self, note: Note, sequence_length: int) -> Shard:
        """A shard that is as an earlier run wrote it, and its tally."""
        self.progress(prod(note.shard.tokens.shape) * self.dtype.itemsize)
        if self.lengths is None or note.tally is None:
            return note.shard, None
        return note.shard, Tally.of(note.tally, self.lengths, sequence_length)


def files_of(shard: PackedShard) -> list[FileEntry]:
    """The files of a shard."""
    found = (shard.tokens, shard.segments, shard.segment_offsets, shard.atoms)
    return [entry for entry in found if entry is not None]


def write_shard(
    directory: Path,
    number: int,
    first: int,
    last: int,
    rows: PlannedRows,
    dtype: np.dtype[Any],
    each: Callable[[Segments | None, Tokens], None],
    *,
    with_segments: bool = True,
    busy: AbstractContextManager[Any] | None = None,
) -> PackedShard:
    """Write rows ``first:last`` as a shard of this number.

    Args:
        each: called with every batch before it is written.
        busy: held while the shard is filled, not while it is closed.
    """
    shape = {"rows": last - first, "sequence_length": rows.plan.sequence_length}
    with PackedShardWriter(directory, number, dtype=dtype, **shape, with_segments=with_segments) as writer:
        with busy or nullcontext():
            for segments, tokens in rows.batches(first, last):
                each(segments, tokens)
                writer.add(tokens, segments)
        return writer.close(rows.atoms(first, last))
