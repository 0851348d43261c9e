"""Rows to shards: what `pack` and `shuffle` share once they know the order of rows and where the tokens are.

Each shard is an independent task: its rows are laid out, fetched, tallied, written and hashed batch by batch. NumPy,
Arrow, xxhash and the kernel release the interpreter lock for the heavy parts, so the workers are threads.
"""

from __future__ import annotations

import shutil
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Semaphore
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from packtool.metrics import Tally
from packtool.plan import Ints, Plan, Segments
from packtool.shuffling.atom import AtomShuffle
from packtool.storage.files import open_array, write_bytes
from packtool.storage.manifest import Bucket, PackedShard
from packtool.storage.packed import ShardWriter, from_table
from packtool.writing.layout import BATCH_TOKENS, Layout
from packtool.writing.partition import Budget, partition
from packtool.writing.sources import Fetch, Source

Progress = Callable[[int], object]
"""Told the bytes written since the last call."""

CLOSING = 2
"""Shards that may wait for the disk while as many as there are workers are being filled."""


@dataclass(frozen=True)
class RowWriter:
    """Writes the rows of a layout to the shards of one directory.

    Attributes:
        directory: of the bucket.
        dtype: of the tokens.
        shard_tokens: a shard closes before it would exceed this many tokens (but holds at least one row).
        lengths: of every document, EOS included; None where segments are not known (no table, no tally).
        with_segments: write the segment table.
        workers: threads.
        progress: told how many bytes of tokens were written.
        notes: directory for notes on finished shards: a shard that has one there is not written again.
    """

    directory: Path
    dtype: np.dtype[Any]
    shard_tokens: int
    lengths: Ints | None
    with_segments: bool
    workers: int
    progress: Progress
    notes: Path

    def write(self, layout: Layout, fetch: Fetch) -> tuple[list[PackedShard], Tally | None]:
        """Write all rows; return the shards in order and the tally of all rows."""
        self.directory.mkdir(parents=True, exist_ok=True)
        self.notes.mkdir(parents=True, exist_ok=True)
        step = max(1, self.shard_tokens // layout.plan.sequence_length)
        parts = [(number, row, min(row + step, layout.rows)) for number, row in enumerate(range(0, layout.rows, step))]
        total = None if self.lengths is None else Tally(self.lengths, layout.plan.sequence_length)
        shards = []
        # A shard that is being closed waits for the disk, not for a processor: meanwhile others may begin.
        with ThreadPoolExecutor(self.workers + CLOSING, thread_name_prefix="packtool") as pool:
            busy = Semaphore(self.workers)
            futures = deque(pool.submit(self._shard, busy, layout, fetch, *part) for part in parts)
            try:
                while futures:
                    shard, tally = futures.popleft().result()
                    shards.append(shard)
                    if total is not None and tally is not None:
                        total += tally
            except BaseException:
                pool.shutdown(wait=True, cancel_futures=True)
                raise
        return shards, total

    def _shard(
        self, busy: Semaphore, layout: Layout, fetch: Fetch, number: int, first: int, last: int
    ) -> tuple[PackedShard, Tally | None]:
        length = layout.plan.sequence_length
        note = self._note(number)
        if note.exists():
            finished = self._finished(note, length)
            layout.consume(first, last)
            return finished
        tally = None if self.lengths is None else Tally(self.lengths, length)
        writer = ShardWriter(
            self.directory,
            number,
            dtype=self.dtype,
            rows=last - first,
            sequence_length=length,
            with_segments=self.with_segments,
        )
        with writer:
            with busy:
                for a, b in layout.batches(first, last):
                    rows = None
                    if tally is not None:
                        rows = layout.segments(a, b)
                        tally.add(rows)
                    tokens = fetch(a, b, rows)
                    writer.add(tokens, rows)
                    self.progress(tokens.nbytes)
            shard = writer.close(layout.atoms(first, last))
        if shard.segments is not None or tally is None:  # else it could not be counted again
            write_bytes(note, msgspec.json.encode(shard))
            layout.consume(first, last)
        return shard, tally

    def complete(self, plan: Plan) -> bool:
        """Whether an earlier run wrote all shards."""
        step = max(1, self.shard_tokens // plan.sequence_length)
        return all(self._note(number).exists() for number in range(-(-plan.rows // step)))

    def _note(self, number: int) -> Path:
        return self.notes / f"shard-{number:05d}.json"

    def _finished(self, note: Path, sequence_length: int) -> tuple[PackedShard, Tally | None]:
        """A shard that an earlier run wrote, and its tally from its segment table."""
        shard = msgspec.json.decode(note.read_bytes(), type=PackedShard)
        tokens = open_array(self.directory, shard.tokens)
        self.progress(tokens.nbytes)
        if self.lengths is None or shard.segments is None or shard.segment_offsets is None:
            return shard, None
        tally = Tally(self.lengths, sequence_length)
        table = open_array(self.directory, shard.segments)
        offsets = open_array(self.directory, shard.segment_offsets)
        step = max(1, BATCH_TOKENS // sequence_length)
        for first in range(0, len(tokens), step):
            near = offsets[first : first + step + 1]
            tally.add(from_table(table[near[0] : near[-1]], near - near[0]))
        return shard, tally


def write_shuffled(
    writer: RowWriter, source: Source, shuffle: AtomShuffle | None, *, budget: Budget, scratch: Path
) -> tuple[list[PackedShard], Tally | None]:
    """Write the rows of a plan in a new order, within a budget of memory; the bytes do not depend on it.

    Args:
        shuffle: of the plan's atoms; None keeps its order.
        budget: where the source is larger, it goes through parts on disk first.
        scratch: directory for the parts; gone afterwards.
    """
    if shuffle is None or moves(source, shuffle, budget) == 1 or writer.complete(source.plan):
        layout = Layout(source.plan, None if shuffle is None else shuffle.order())
        fetch = source.fetch(layout)
        if not budget.holds(source):
            fetch = _releasing(fetch, source)
    else:
        layout = partition(source, shuffle.keys(), scratch, budget=budget, progress=writer.progress)
        fetch = layout.fetch
    result = writer.write(layout, fetch)
    source.release()
    shutil.rmtree(scratch, ignore_errors=True)
    return result


def moves(source: Source, shuffle: AtomShuffle | None, budget: Budget) -> int:
    """How often `write_shuffled` moves each token, and so how much progress it reports."""
    return 1 if shuffle is None or budget.holds(source) else 2


def _releasing(fetch: Fetch, source: Source) -> Fetch:
    """Read, and give back the memory that maps what was read."""

    def rows(first: int, last: int, pieces: Segments | None) -> npt.NDArray[Any]:
        tokens = fetch(first, last, pieces)
        source.release()
        return tokens

    return rows


def bucket_entry(directory: str, plan: Plan, shards: list[PackedShard]) -> Bucket:
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
