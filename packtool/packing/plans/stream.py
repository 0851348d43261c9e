"""A plan of one stream of documents, cut wherever a unit ends; segments are computed on demand."""

from __future__ import annotations

import numpy as np

from packtool.arrays import IN_MEMORY, Arrays
from packtool.plan import I64, Ints, Plan, Segments, offsets_of, ranges

_INDEXED_UNIT = 64
"""Units of at least so many tokens have their first document looked up once and for all: searching the documents in
order costs far less than in the random order of a shuffle, and the index stays small beside the tokens."""


class StreamPlan(Plan):
    """Documents one after the other, cut into units of min(A, L) tokens.

    Args:
        sequence_length: tokens in a row, L.
        atom_size: tokens in an atom, A; divides L or is a multiple of it.
        ends: documents + 1 offsets of the documents in the stream, as of `offsets_of` their lengths.
        documents: which documents the stream holds, in its order; None for all.
        remainder: ``pad`` keeps every token, ``drop`` the tokens that fill rows.
        arrays: makes those of the plan.

    >>> plan = StreamPlan(4, 4, np.array([0, 3, 9]))
    >>> segments = plan.segments(np.array([0, 2]))
    >>> segments.document, segments.start, segments.length, segments.offsets
    (array([0, 1, 1]), array([0, 0, 5]), array([3, 1, 1]), array([0, 2, 3]))
    """

    def __init__(
        self,
        sequence_length: int,
        atom_size: int,
        ends: I64,
        *,
        documents: Ints | None = None,
        remainder: str = "pad",
        arrays: Arrays = IN_MEMORY,
    ) -> None:
        unit = min(atom_size, sequence_length)
        tokens = int(ends[-1])
        kept = tokens if remainder == "pad" else tokens - tokens % sequence_length
        omitted = len(ends) - int(np.searchsorted(ends, kept, side="right"))
        super().__init__(
            sequence_length=sequence_length,
            unit=unit,
            units=-(-kept // unit),
            dropped=tokens - kept - omitted,
            eos_omitted=omitted,
            atom_units=atom_size // unit,
            last_atom_stays=kept % atom_size > 0,
        )
        self._ends = ends
        self._documents = documents
        self._tokens = kept
        self._firsts: I64 | None = None
        if unit >= _INDEXED_UNIT:
            self._firsts = arrays.filled(self.units + 1, np.int64, lambda a, b: self._first_document(np.arange(a, b)))

    def _first_document(self, units: Ints) -> I64:
        """Find the document, by its place in the stream, that holds each unit's first token."""
        begin = np.minimum(np.asarray(units, np.int64) * self.unit, self._tokens)
        return np.searchsorted(self._ends, begin, side="right") - 1

    def segments(self, units: Ints) -> Segments:
        begin = np.asarray(units, np.int64) * self.unit
        end = np.minimum(begin + self.unit, self._tokens)
        if self._firsts is None:
            first, last = self._first_document(units), self._first_document(np.asarray(units) + 1)
        else:
            first, last = self._firsts[units], self._firsts[np.asarray(units) + 1]
        counts = last - first + (self._ends[last] < end)
        offsets = offsets_of(counts)
        place = ranges(first, counts, offsets)
        origin = self._ends[place]
        start = np.maximum(np.repeat(begin, counts) - origin, 0)
        length = np.minimum(np.repeat(end, counts), self._ends[place + 1]) - origin - start
        document = place if self._documents is None else self._documents[place].astype(np.int64)
        return Segments(document, start, length, np.zeros_like(document), offsets)
