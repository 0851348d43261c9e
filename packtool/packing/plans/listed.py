"""A plan whose segments are listed one by one: the plainest, for strategies that need nothing better."""

from __future__ import annotations

import numpy as np

from packtool.plan import Ints, Plan, Segments, offsets_of, ranges


class ListedPlan(Plan):
    """Rows of segments that are listed one by one.

    Args:
        sequence_length: tokens in a row.
        lengths: length of each document with its EOS.
        row_offsets: rows + 1; row i holds segments ``row_offsets[i]:row_offsets[i + 1]``.
        document: document of each segment.
        start: first token of each segment, or None where each begins its document.
        length: tokens of each segment, or None where each runs to the end of its document.
        repeated: leading tokens of each segment that an earlier row has, or None where there are none.

    >>> plan = ListedPlan(8, lengths=np.array([5, 3, 6]), row_offsets=np.array([0, 2, 3]), document=np.array([0, 1, 2]))
    >>> plan.segments(np.array([1, 0])).document
    array([2, 0, 1])
    """

    def __init__(
        self,
        sequence_length: int,
        *,
        lengths: Ints,
        row_offsets: Ints,
        document: Ints,
        start: Ints | None = None,
        length: Ints | None = None,
        repeated: Ints | None = None,
        dropped: int = 0,
        eos_omitted: int = 0,
    ) -> None:
        super().__init__(
            sequence_length=sequence_length,
            unit=sequence_length,
            units=len(row_offsets) - 1,
            dropped=dropped,
            eos_omitted=eos_omitted,
        )
        self._lengths = lengths
        self._row_offsets = row_offsets
        self._document = document
        self._start = start
        self._length = length
        self._repeated = repeated

    def segments(self, units: Ints) -> Segments:
        first = self._row_offsets[units].astype(np.int64)
        counts = self._row_offsets[np.asarray(units) + 1].astype(np.int64) - first
        offsets = offsets_of(counts)
        at = ranges(first, counts, offsets)
        document = self._document[at].astype(np.int64)
        start = np.zeros_like(document) if self._start is None else self._start[at].astype(np.int64)
        if self._length is None:
            length = self._lengths[document].astype(np.int64) - start
        else:
            length = self._length[at].astype(np.int64)
        repeated = np.zeros_like(document) if self._repeated is None else self._repeated[at].astype(np.int64)
        return Segments(document, start, length, repeated, offsets)
