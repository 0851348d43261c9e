"""Runs of equal bins, as the greedy algorithms fill them before documents are assigned.

Which item of a length lies where follows from two numbers: items of one length are taken in their order, so a run
needs only the first one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from packtool.plan import I64, offsets_of

Entry = tuple[int, int, int]
"""Length, items of that length in each bin, first of them among the items of that length."""


@dataclass(frozen=True)
class Runs:
    """Runs of equal bins, in bin order, as columns.

    Bin j of run i takes, for each entry e in ``offsets[i]:offsets[i + 1]``, `count[e]` items of length `length[e]`:
    those from ``first[e] + j * count[e]`` on among the items of that length.

    Attributes:
        bins: bins in each run.
        offsets: runs + 1; the entries of each run, in the order in which they were placed.
        length: item length of each entry.
        count: items of each entry in a bin.
        first: first item of each entry.
    """

    bins: I64
    offsets: I64
    length: I64
    count: I64
    first: I64

    @classmethod
    def of(cls, runs: list[tuple[int, list[Entry]]]) -> Runs:
        """Make columns from a list of (bins, entries)."""
        entries = np.array([number for _, bin in runs for entry in bin for number in entry], np.int64).reshape(-1, 3)
        return cls(
            np.array([bins for bins, _ in runs], np.int64),
            offsets_of(np.array([len(bin) for _, bin in runs], np.int64)),
            *(np.ascontiguousarray(column) for column in entries.T),
        )

    @classmethod
    def join(cls, parts: Sequence[Runs]) -> Runs:
        """Put runs one after the other."""
        return cls(
            np.concatenate([runs.bins for runs in parts]),
            offsets_of(np.concatenate([np.diff(runs.offsets) for runs in parts])),
            np.concatenate([runs.length for runs in parts]),
            np.concatenate([runs.count for runs in parts]),
            np.concatenate([runs.first for runs in parts]),
        )

    def after(self, used: I64) -> Runs:
        """Shift the same bins to later items: of each length, the first `used` are taken already."""
        return replace(self, first=self.first + used[self.length])

    def run_of(self) -> I64:
        """Find the run of each entry."""
        return np.repeat(np.arange(len(self.bins)), np.diff(self.offsets))

    def items(self) -> I64:
        """Count the items in a bin of each run."""
        ends = offsets_of(self.count)
        return ends[self.offsets[1:]] - ends[self.offsets[:-1]]

    def tokens(self) -> I64:
        """Count the tokens in a bin of each run."""
        ends = offsets_of(self.count * self.length)
        return ends[self.offsets[1:]] - ends[self.offsets[:-1]]

    def where(self, wanted: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Runs:
        """Select runs; `first` still counts among all items of a length."""
        kept = wanted[self.run_of()]
        return Runs(
            self.bins[wanted],
            offsets_of(np.diff(self.offsets)[wanted]),
            self.length[kept],
            self.count[kept],
            self.first[kept],
        )
