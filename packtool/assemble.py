"""Rows to shards: what `pack` and `shuffle` share once they know the order of rows and where the tokens are.

Each shard is an independent task: its rows are laid out, fetched, tallied, written and hashed batch by batch. NumPy,
Arrow, xxhash and the kernel release the interpreter lock for the heavy parts, so the workers are threads.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Semaphore
from typing import Any

import numpy as np
import numpy.typing as npt

from packtool.layout import Layout
from packtool.metrics import Tally
from packtool.plan import Ints, Plan, Segments
from packtool.storage.manifest import Bucket, PackedShard
from packtool.storage.packed import ShardWriter

Fetch = Callable[[int, int, Segments | None], npt.NDArray[Any]]
"""(first row, last row, their pieces) to the tokens of these rows."""
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
    """

    directory: Path
    dtype: np.dtype[Any]
    shard_tokens: int
    lengths: Ints | None
    with_segments: bool
    workers: int
    progress: Progress

    def write(self, layout: Layout, fetch: Fetch) -> tuple[list[PackedShard], Tally | None]:
        """Write all rows; return the shards in order and the tally of all rows."""
        self.directory.mkdir(parents=True, exist_ok=True)
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
            return writer.close(layout.atoms(first, last)), tally


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
