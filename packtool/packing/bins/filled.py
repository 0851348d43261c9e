"""Filled bins of tails: the last step of the bin-packing strategies, as a plan or as counts alone.

A fill says how many tails of each length lie in a bin. That is enough to count rows, since equal bins are counted once
and multiplied; a plan then assigns documents to the tails.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from packtool.metrics.tally import Tally
from packtool.options.pack import PackOptions
from packtool.packing.bins.assign import assign, some_entries, stable_order
from packtool.packing.bins.cut import CutDocuments, cut_documents
from packtool.packing.bins.optimize import near_optimal
from packtool.packing.bins.runs import Runs
from packtool.packing.plans.bins_and_rows import Bins, LongRows, RowsPlan
from packtool.packing.plans.counted import Counted
from packtool.packing.plans.stream import StreamPlan
from packtool.plan import I64, Ints, Segments, offsets_of, pad

_ROWS = 1 << 12  # rows of a stream that are counted at a time


def fill(lengths: Ints, options: PackOptions, greedy: Callable[[I64, int], Runs]) -> FilledBins:
    """Cut documents to chunks of at most L tokens, and put them into bins of L; a chunk of EOS alone is left out."""
    documents = cut_documents(lengths, options.row_length)
    if not options.optimize:
        return FilledBins(lengths, options.row_length, documents, greedy(documents.counts, options.row_length))
    runs, bound = near_optimal(documents.counts, options.row_length, greedy)
    return FilledBins(lengths, options.row_length, documents, runs, least_rows=documents.whole_rows + bound)


@dataclass(frozen=True)
class FilledBins:
    """Long rows, and tails in bins. Only a plan needs to know which document has which tail.

    Attributes:
        lengths: tokens of each document with its EOS.
        sequence_length: tokens in a row, L.
        documents: the documents, cut.
        runs: the tails in bins; bins may exceed L, what is beyond it is dropped.
        after_rows: bins that a whole row opens; their tails are dropped, the row is one of the long rows.
        remainder: None leaves bins below L as they are, to be padded. Else they are joined to one stream and cut at
            L; the last row is padded (``pad``) or dropped (``drop``).
        least_rows: a proven lower bound, if there is one.
    """

    lengths: Ints
    sequence_length: int
    documents: CutDocuments
    runs: Runs
    after_rows: Runs | None = None
    remainder: str | None = None
    least_rows: int | None = None

    def plan(self) -> RowsPlan:
        """Assign documents to tails."""
        full, short = self._full_and_short
        document, offsets = assign(self._order, self.documents.counts, full)
        dropped, eos_omitted = self._beyond()
        listed = start = length = np.empty(0, np.int64)
        if len(short.bins):
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
            long=LongRows.of(self.documents.long, offsets_of(self.documents.rows)),
            bins=Bins(document, offsets, listed, start, length),
            dropped=dropped,
            eos_omitted=eos_omitted,
            least_rows=self.least_rows,
        )

    def count(self) -> Counted:
        """Count the rows of the plan."""
        tally, (full, short) = Tally(self.lengths, self.sequence_length), self._full_and_short
        dropped, eos_omitted = self._beyond()
        self._count_long_rows(tally)
        self._count_full(full, tally)
        if len(short.bins):
            _, _, stream = self._stream
            self._count_stream(tally)
            dropped, eos_omitted = dropped + stream.dropped, eos_omitted + stream.eos_omitted
        # Tails of long documents were counted like short documents, which are whole.
        tally.intact -= self._long_tails_kept(full)
        return Counted(tally, dropped, eos_omitted)

    @cached_property
    def _full_and_short(self) -> tuple[Runs, Runs]:
        """Bins that are rows, and those that are joined to a stream."""
        short = self.runs.tokens() < self.sequence_length
        if self.remainder is None:
            short[:] = False
        return self.runs.where(~short), self.runs.where(short)

    @cached_property
    def _stream(self) -> tuple[Ints, I64, StreamPlan]:
        """Documents in short bins; where the tail of each begins in it; and their tails, joined to a stream."""
        left, _ = assign(self._order, self.documents.counts, self._full_and_short[1])
        tokens, row = self.lengths[left].astype(np.int64), self.sequence_length
        tail = tokens % row
        return left, tokens - tail, StreamPlan(row, row, offsets_of(tail), remainder=self.remainder or "pad")

    @cached_property
    def _order(self) -> Ints:
        """Documents, longest tail first."""
        return stable_order(self.documents.keys, self.documents.key_counts)

    def _beyond(self) -> tuple[int, int]:
        """Count text tokens and EOS of tails that no row or stream holds."""
        lost, omitted = beyond(self._full_and_short[0], self.sequence_length)
        if self.after_rows is not None:
            also_lost, also_omitted = beyond(self.after_rows, self.sequence_length)
            lost, omitted = lost + also_lost, omitted + also_omitted
        return lost, omitted + self.documents.eos_alone

    def _count_long_rows(self, tally: Tally) -> None:
        """Count rows that hold one long document alone."""
        length = self.lengths[self.documents.long].astype(np.int64)
        row = self.sequence_length
        held = self.documents.rows * row
        slide = held > length
        repeated = int((held - length)[slide].sum())
        exact, one_more = int(np.count_nonzero(length == row)), int(np.count_nonzero(length == row + 1))
        ending = int(np.count_nonzero(held >= length)) - exact
        others = self.documents.whole_rows - exact - one_more - ending
        # As documents of L, of L + 1, the last row of a longer one, and any other row of it.
        whole = np.array([row, row + 1, 2 * row, 3 * row])
        start = np.array([0, 0, row, row])
        times = np.array([exact, one_more, ending, others])
        some, zeros = np.arange(4), np.zeros(4, np.int64)
        tally.add(Segments(some, start, np.full(4, row), zeros, np.arange(5)), times, whole)
        tally.repeated += repeated
        tally.placed -= repeated
        tally.unlisted_overlaps += int(np.count_nonzero(slide))

    def _count_full(self, runs: Runs, tally: Tally) -> None:
        """Count bins that are rows, cut at L."""
        tail, kept_tokens = self._clipped(runs)
        kept = kept_tokens > 0
        row_offsets = offsets_of(kept.view(np.uint8))[offsets_of(runs.items())]
        zeros = np.zeros(int(row_offsets[-1]), np.int64)
        tally.add(Segments(np.arange(len(zeros)), zeros, kept_tokens[kept], zeros, row_offsets), runs.bins, tail[kept])
        missing = self.sequence_length - np.minimum(runs.tokens(), self.sequence_length)
        tally.padding += int(missing @ runs.bins)

    def _clipped(self, runs: Runs) -> tuple[I64, I64]:
        """Find the tokens of each item of a bin of each run, and how many of them lie within the first L."""
        items = runs.items()
        tail = np.repeat(runs.length, runs.count)
        ends = offsets_of(tail)
        before = ends[:-1] - np.repeat(ends[offsets_of(items)[:-1]], items)
        return tail, np.clip(self.sequence_length - before, 0, tail)

    def _count_stream(self, tally: Tally) -> None:
        """Count bins below a row, joined to a stream and cut."""
        left, begin, stream = self._stream
        for first in range(0, stream.rows, _ROWS):
            part = stream.segments(np.arange(first, min(first + _ROWS, stream.rows)))
            start = begin[part.document] + part.start
            document = left[part.document].astype(np.int64)
            tally.add(pad(Segments(document, start, part.length, part.repeated, part.offsets), stream.unit))

    def _long_tails_kept(self, full: Runs) -> int:
        """Count tails of long documents that lie whole in full rows: all there are, less those that do not."""
        tails = int(np.count_nonzero(self.documents.keys[self.documents.long] < self.sequence_length))
        if tails and self.after_rows is not None:
            opens = self.after_rows.length == self.sequence_length
            tails -= self._long_among(self.after_rows, np.where(opens, self.after_rows.count, 0))
        if tails:
            tail, kept = self._clipped(full)
            entry = np.repeat(np.arange(len(full.count)), full.count)
            # Without its EOS, which may be cut off, a document is whole.
            whole = np.bincount(entry, kept >= tail - 1, minlength=len(full.count)).astype(np.int64)
            tails -= self._long_among(full, whole)
        if tails and len(self._full_and_short[1].bins):
            tails -= int(np.count_nonzero(self.lengths[self._stream[0]] >= self.sequence_length))
        return tails

    def _long_among(self, runs: Runs, skipped: I64) -> int:
        """Count tails of long documents among the items of each entry after the first `skipped` in every bin."""
        wanted = runs.count - skipped
        items = wanted * runs.bins[runs.run_of()]
        chosen = np.flatnonzero(items)
        long = 0
        counts = self.documents.counts
        longer = np.append(counts[::-1].cumsum()[::-1] - counts, 0)
        for here, size, inside in some_entries(items[chosen]):
            part = chosen[here]
            bin, item = np.divmod(inside, np.repeat(wanted[part], size))
            first = longer[runs.length[part]] + runs.first[part] + skipped[part]
            places = np.repeat(first, size) + bin * np.repeat(runs.count[part], size) + item
            long += int(np.count_nonzero(self.lengths[self._order[places]] >= self.sequence_length))
        return long


def beyond(runs: Runs, sequence_length: int) -> tuple[int, int]:
    """Count text tokens and EOS that lie in bins beyond the first L tokens.

    Each item runs to its document's end, so one that is cut loses its EOS.

    >>> bin = Runs.of([(2, [(4, 2, 0), (3, 1, 0)])])
    >>> beyond(bin, 7)
    (4, 4)
    """
    run = runs.run_of()
    ends = offsets_of(runs.length * runs.count)
    begin = ends[:-1] - ends[runs.offsets[run]]
    kept = np.clip((sequence_length - begin) // np.maximum(runs.length, 1), 0, runs.count)
    cut = int((runs.count - kept) @ runs.bins[run])
    tokens = int(np.maximum(runs.tokens() - sequence_length, 0) @ runs.bins)
    return tokens - cut, cut
