"""Cut documents to whole rows and a tail, and put the tails in bins.

Every bin-packing strategy begins and ends here. In between it decides how many tails of each length lie in a bin; the
plan then assigns documents to the tails.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from packtool.options.plans import PackOptions
from packtool.planning.packing.bins.runs import Keys, Runs, assign, stable_order
from packtool.planning.packing.plans import Bins, LongRows, RowsPlan, StreamPlan
from packtool.planning.plan import I64, Ints, offsets_of

_BATCH = 1 << 18  # documents that are cut at a time

RowsAndTails = Callable[[I64, int], tuple[I64, I64]]
"""Function from (lengths of documents of at least L tokens, L) to (their whole rows, the tokens of their tails)."""


@dataclass(frozen=True)
class CutDocuments:
    """Whole rows of long documents, and tails."""

    long: Ints  # documents that have whole rows
    rows: I64  # number of whole rows of each long document
    shortfall: Keys  # tokens that the tail of each document lacks to fill a row; L without a tail
    counts: I64  # number of tails of each length, 0 to L - 1; ``counts[0]`` is 0
    eos_alone: int  # number of tails of EOS alone, which are left out

    @property
    def whole_rows(self) -> int:
        """Rows of long documents, all together."""
        return int(self.rows.sum())


def cut_documents(lengths: Ints, sequence_length: int, rows_and_tails: RowsAndTails = np.divmod) -> CutDocuments:
    """Cut documents to whole rows and tails.

    Args:
        lengths: tokens of each document with its EOS, at least 1.
        sequence_length: tokens in a row, L, at least 2.
        rows_and_tails: how a document of at least L tokens is cut; by default into as many whole rows as it fills.

    >>> documents = cut_documents(np.array([3, 9, 4, 8]), 4)
    >>> documents.long, documents.rows, documents.shortfall, documents.counts, documents.eos_alone
    (array([1, 2, 3]), array([2, 1, 2]), array([1, 4, 4, 4], dtype=uint16), array([0, 0, 0, 1]), 1)
    """
    shortfall: Keys = np.empty(len(lengths), np.uint16 if sequence_length < 1 << 16 else np.uint32)
    shortfall_counts = np.zeros(sequence_length + 1, np.int64)
    long, rows = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    eos_alone = 0
    for first in range(0, len(lengths), _BATCH):
        part = lengths[first : first + _BATCH].astype(np.int64)
        here = np.flatnonzero(part >= sequence_length)
        count, tail = rows_and_tails(part[here], sequence_length)
        long.append(here + first)
        rows.append(count)
        part[here] = tail
        alone = np.flatnonzero(part == 1)
        eos_alone += len(alone)
        part[alone] = 0
        lacking = sequence_length - part
        shortfall[first : first + _BATCH] = lacking
        shortfall_counts += np.bincount(lacking, minlength=sequence_length + 1)
    # A tail is shorter than a row, so a shortfall of 0 never occurs; that of L means that there is no tail.
    counts = np.flip(shortfall_counts)[:-1].copy()
    counts[0] = 0
    return CutDocuments(np.concatenate(long), np.concatenate(rows), shortfall, counts, eos_alone)


def fill(lengths: Ints, options: PackOptions, greedy: Callable[[I64, int], Runs]) -> FilledBins:
    """Cut documents to chunks of at most L tokens, and put them into bins of L; a chunk of EOS alone is left out."""
    documents = cut_documents(lengths, options.row_length)
    return FilledBins(lengths, options.row_length, documents, greedy(documents.counts, options.row_length))


@dataclass(frozen=True)
class FilledBins:
    """Long rows, and tails in bins.

    Attributes:
        lengths: tokens of each document with its EOS.
        sequence_length: tokens in a row, L.
        documents: the documents, cut.
        runs: the tails in bins; bins may exceed L, and tokens beyond it are dropped.
        after_rows: bins that a whole row opens; their tails are dropped, the row is one of the long rows. None where
            there are none.
        remainder: None leaves bins below L as they are, to be padded. Else they are joined to one stream and cut at
            L; the last row is padded (``pad``) or dropped (``drop``).
    """

    lengths: Ints
    sequence_length: int
    documents: CutDocuments
    runs: Runs
    after_rows: Runs | None = None
    remainder: str | None = None

    def plan(self) -> RowsPlan:
        """Assign documents to tails."""
        full, short = self._full_and_short
        dropped, eos_omitted = self._beyond()
        stages = self._stages()
        document, offsets = assign(self._order, self.documents.counts, full)
        listed = start = length = np.empty(0, np.int64)
        if short is not None:
            left, begin, stream = self._stream
            segments = stream.segments(np.arange(stream.units))
            dropped, eos_omitted = dropped + stream.dropped, eos_omitted + stream.eos_omitted
            listed = np.arange(len(document), len(document) + len(segments))
            start, length = begin[segments.document] + segments.start, segments.length
            document = np.concatenate([document, left[segments.document]])
            offsets = np.concatenate([offsets, offsets[-1] + segments.offsets[1:]])
        return RowsPlan(
            self.sequence_length,
            self.lengths,
            long=LongRows.of(self.documents.long, self.documents.rows, self.lengths, self.sequence_length),
            bins=Bins(document, offsets, listed, start, length),
            dropped=dropped,
            eos_omitted=eos_omitted,
            stages=stages,
        )

    def _stages(self) -> dict[str, int]:
        """Count rows by the step that makes them, where bins below a row are joined."""
        if self.remainder is None:
            return {}
        full, short = self._full_and_short
        rows = self.documents.rows
        capacity = rows * self.sequence_length
        slide = capacity > self.lengths[self.documents.long]
        return {
            "overlapping": int(rows[slide].sum()),
            "whole": int(rows[~slide].sum()),
            "bins": int(full.bins.sum()),
            "joined": 0 if short is None else self._stream[2].rows,
        }

    @cached_property
    def _full_and_short(self) -> tuple[Runs, Runs | None]:
        """Bins that are rows, and bins that are joined to a stream; None where there are no such bins."""
        if self.remainder is None:
            return self.runs, None
        short = self.runs.tokens() < self.sequence_length
        return self.runs.where(~short), self.runs.where(short) if short.any() else None

    @cached_property
    def _stream(self) -> tuple[Ints, I64, StreamPlan]:
        """Return the documents in short bins, the starts of their tails, and the stream of the tails."""
        _, short = self._full_and_short
        assert short is not None
        left, _ = assign(self._order, self.documents.counts, short)
        tokens, row = self.lengths[left].astype(np.int64), self.sequence_length
        tail = tokens % row
        return left, tokens - tail, StreamPlan(row, row, offsets_of(tail), remainder=self.remainder or "pad")

    @cached_property
    def _order(self) -> Ints:
        """Documents, longest tail first."""
        counts = self.documents.counts
        of_shortfall = np.zeros(self.sequence_length + 1, np.int64)
        of_shortfall[1:-1] = np.flip(counts[1:])
        of_shortfall[-1] = len(self.documents.shortfall) - int(counts.sum())  # documents without a tail
        return stable_order(self.documents.shortfall, of_shortfall)

    def _clipped(self, runs: Runs) -> tuple[I64, I64]:
        """Find the tokens of each item of a bin of each run, and how many of them lie within the first L."""
        items = runs.items()
        tail = np.repeat(runs.length, runs.count)
        ends = offsets_of(tail)
        first = offsets_of(items)[:-1]  # the first item of each run's bin
        before = ends[:-1] - np.repeat(ends[first], items)  # tokens before each item in its bin
        return tail, np.clip(self.sequence_length - before, 0, tail)

    def _beyond(self) -> tuple[int, int]:
        """Count text tokens and EOS of tails that no row or stream holds."""
        runs, _ = self._full_and_short
        if self.after_rows is not None:
            runs = Runs.join([runs, self.after_rows])
        tail, kept = self._clipped(runs)
        bins = np.repeat(runs.bins, runs.items())
        # Each item runs to its document's end, so one that is cut loses its EOS.
        cut = int(bins[kept < tail].sum())
        return int((tail - kept) @ bins) - cut, cut + self.documents.eos_alone
