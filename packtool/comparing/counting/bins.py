"""Bins: equal ones are counted once and multiplied. Which document lies where matters only where bins are cut."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from packtool.comparing.counting.counted import Counted
from packtool.metrics import Tally
from packtool.packing import PackOptions
from packtool.packing.bins.assign import assign, stable_order
from packtool.packing.bins.cut import CutDocuments, RowsAndTails, cut, plain
from packtool.packing.bins.greedy import best_fit, first_fit
from packtool.packing.bins.runs import Runs
from packtool.packing.bins.tails import beyond
from packtool.packing.plans.stream import StreamPlan
from packtool.packing.plans.windows import in_windows
from packtool.packing.seamless import slides
from packtool.plan import I64, Ints, Segments, offsets_of, ranges
from packtool.writing.layout import Layout, pad

_ITEMS = 1 << 22  # items that are looked up at a time

Fill = Callable[[CutDocuments], tuple[Runs, Runs | None]]
"""From cut documents to bins, and to the bins after whole rows, whose items are dropped."""


def ffd(lengths: Ints, options: PackOptions) -> list[Counted] | None:
    """First-fit-decreasing bins of whole tails."""
    return _whole(lengths, options, first_fit)


def bfd(lengths: Ints, options: PackOptions) -> list[Counted] | None:
    """Best-fit-decreasing bins of whole tails."""
    return _whole(lengths, options, best_fit)


def _whole(lengths: Ints, options: PackOptions, fit: Callable[[I64, int], Runs]) -> list[Counted] | None:
    if options.optimize:
        return None
    return _windows(lengths, options, plain, lambda documents: (fit(documents.counts, options.row_length), None), None)


def bfd_extra(lengths: Ints, options: PackOptions) -> list[Counted] | None:
    """Best-fit-decreasing bins a little larger than a row."""

    def fill(documents: CutDocuments) -> tuple[Runs, Runs]:
        counts = np.append(documents.counts, documents.whole_rows)
        runs = best_fit(counts, options.row_length + options.extra)
        after_row = (runs.length == options.row_length)[runs.offsets[:-1]]
        return runs.where(~after_row), runs.where(after_row)

    return _windows(lengths, options, plain, fill, options.remainder)


def seamless(lengths: Ints, options: PackOptions) -> list[Counted] | None:
    """Sliding rows of long documents, then first-fit-decreasing bins a little larger than a row."""

    def rows_and_tails(long: I64, sequence_length: int) -> tuple[I64, I64]:
        rows, tails = np.divmod(long, sequence_length)
        slide = slides(long, sequence_length, options.repetition)
        return rows + slide, np.where(slide, 0, tails)

    def fill(documents: CutDocuments) -> tuple[Runs, None]:
        return first_fit(documents.counts, options.row_length + options.extra), None

    return _windows(lengths, options, rows_and_tails, fill, options.remainder)


def _windows(
    lengths: Ints, options: PackOptions, rows_and_tails: RowsAndTails, fill: Fill, remainder: str | None
) -> list[Counted]:
    """The counts of all windows together."""
    counted = Counted(Tally(lengths, options.row_length))
    for window in in_windows([lengths], options.window_tokens):
        documents = cut(window, options.row_length, rows_and_tails)
        runs, after_rows = fill(documents)
        _Window(window, documents, counted, remainder).count(runs, after_rows)
    return [counted]


class _Window:
    """Counts one window into the counts of all."""

    def __init__(self, lengths: Ints, documents: CutDocuments, counted: Counted, remainder: str | None) -> None:
        self.lengths, self.documents, self.counted, self.remainder = lengths, documents, counted, remainder
        self.sequence_length, self.tally = counted.sequence_length, counted.tally
        self._order: Ints | None = None

    def count(self, runs: Runs, after_rows: Runs | None) -> None:
        self._count_long_rows()
        short = runs.tokens() < self.sequence_length
        if self.remainder is None:
            short[:] = False
        full = runs.where(~short)
        lost, omitted = beyond(full, self.sequence_length)
        long_tails = int(np.count_nonzero(self.documents.keys[self.documents.long] < self.sequence_length))
        if after_rows is not None and len(after_rows.bins):
            # A whole row opens the bin, and is counted with the long rows; what follows it is dropped.
            also_lost, also_omitted = beyond(after_rows, self.sequence_length)
            lost, omitted = lost + also_lost, omitted + also_omitted
            if long_tails:
                tails = after_rows.length < self.sequence_length
                long_tails -= self._long_among(after_rows, np.where(tails, 0, after_rows.count))
        long_tails -= self._count_full(full, long_tails > 0)
        if short.any():
            long_tails -= self._count_joined(runs.where(short))
        # Tails of long documents look like short documents that are whole.
        self.tally.intact -= long_tails
        self.counted.dropped += lost
        self.counted.eos_omitted += omitted + self.documents.eos_alone

    def _count_long_rows(self) -> None:
        """Rows that hold one long document alone."""
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
        self.tally.add(Segments(some, start, np.full(4, row), zeros, np.arange(5)), times, whole)
        self.tally.repeated += repeated
        self.tally.placed -= repeated
        self.tally.unlisted_overlaps += int(np.count_nonzero(slide))

    def _count_full(self, runs: Runs, some_long: bool) -> int:
        """Bins that are rows, cut at L; returns how many tails of long documents are in them and not intact."""
        items = runs.items()
        offsets = offsets_of(items)
        entry = np.repeat(np.arange(len(runs.length)), runs.count)
        tail = runs.length[entry]
        ends = offsets_of(tail)
        before = ends[:-1] - np.repeat(ends[offsets[:-1]], items)
        length = np.clip(self.sequence_length - before, 0, tail)
        kept = length > 0
        row_offsets = offsets_of(kept.view(np.uint8))[offsets]
        missing = self.sequence_length - np.minimum(runs.tokens(), self.sequence_length)
        rows = Segments(
            np.arange(int(row_offsets[-1])),
            np.zeros(int(row_offsets[-1]), np.int64),
            length[kept],
            np.zeros(int(row_offsets[-1]), np.int64),
            row_offsets,
        )
        self.tally.add(rows, runs.bins, tail[kept])
        # What a row lacks is padding.
        self.tally.padding += int(missing @ runs.bins)
        if not some_long:
            return 0
        whole = np.bincount(entry, length >= tail - 1, minlength=len(runs.length)).astype(np.int64)
        return self._long_among(runs, whole)

    def _long_among(self, runs: Runs, skipped: I64) -> int:
        """Tails of long documents among the items of each entry after the first `skipped` in every bin."""
        found = 0
        for source in self._sources(runs, skipped):
            document = self.order[source]
            found += int(np.count_nonzero(self.lengths[document] >= self.sequence_length))
        return found

    def _sources(self, runs: Runs, skipped: I64) -> Iterator[I64]:
        """Places in the order of the items that are wanted, batch by batch."""
        wanted = runs.count - skipped
        bins = runs.bins[runs.run_of()]
        chosen = np.flatnonzero(wanted * bins)
        longer = self._longer()
        totals = (wanted * bins)[chosen]
        ends = np.cumsum(totals)
        first = 0
        while first < len(chosen):
            last = max(first + 1, int(np.searchsorted(ends, (ends[first - 1] if first else 0) + _ITEMS, side="right")))
            part = chosen[first:last]
            size = totals[first:last]
            inside = ranges(np.zeros(len(part), np.int64), size, offsets_of(size))
            bin, item = np.divmod(inside, np.repeat(wanted[part], size))
            base = longer[runs.length[part]] + runs.first[part] + skipped[part]
            yield np.repeat(base, size) + bin * np.repeat(runs.count[part], size) + item
            first = last

    def _longer(self) -> I64:
        """Items longer than each length: where those of the length begin in the order."""
        counts = self.documents.counts
        return np.append(counts[::-1].cumsum()[::-1] - counts, 0)

    def _count_joined(self, runs: Runs) -> int:
        """Bins below a row, joined to a stream and cut; returns how many tails of long documents are in them."""
        left, _ = assign(self.order, self.documents.counts, runs)
        tokens = self.lengths[left].astype(np.int64)
        row = self.sequence_length
        tail = tokens % row
        stream = StreamPlan(row, row, offsets_of(tail), remainder=self.remainder or "pad")
        for first, last in Layout(stream).batches(0, stream.rows):
            segments = stream.segments(np.arange(first, last))
            document = left[segments.document].astype(np.int64)
            start = (tokens - tail)[segments.document] + segments.start
            rows = pad(Segments(document, start, segments.length, segments.repeated, segments.offsets), row)
            self.tally.add(rows, lengths=self.lengths)
        self.counted.dropped += stream.dropped
        self.counted.eos_omitted += stream.eos_omitted
        return int(np.count_nonzero(tokens >= row))

    @property
    def order(self) -> Ints:
        """Documents, longest tail first."""
        if self._order is None:
            self._order = stable_order(self.documents.keys, self.documents.key_counts)
        return self._order
