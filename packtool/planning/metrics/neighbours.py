"""Measure how many pairs of tokens in a row are of documents with the same value of a field."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from packtool.planning.metrics.ratios import ratio
from packtool.planning.plan import I64, Ints, Segments


@dataclass(frozen=True, slots=True)
class Neighbours:
    """The pairs of tokens in a row whose documents have the same value of the first field that they are ordered by.

    Attributes:
        field: its name.
        pairs: pairs of document tokens in one row.
        alike: pairs of which both tokens are of documents with the same value; a missing value equals no other.
        alike_share: alike / pairs; 0 without pairs.
    """

    field: str
    pairs: int
    alike: int
    alike_share: float


class NeighbourCounts:
    """Counts pairs, batch by batch.

    Args:
        field: its name.

    >>> counts, one = NeighbourCounts("repo"), np.array
    >>> rows = Segments(one([0, 1, 2]), one([0, 0, 0]), one([3, 2, 4]), one([0, 0, 0]), one([0, 2, 3]))
    >>> counts.add(rows, one([7, 7, -1]).take)
    >>> counts.result()
    Neighbours(field='repo', pairs=16, alike=10, alike_share=0.625)
    """

    def __init__(self, field: str) -> None:
        self._field = field
        self._pairs = 0
        self._alike = 0

    def add(self, rows: Segments, group_of: Callable[[I64], Ints]) -> None:
        """Count whole rows; padding and inserted EOS are in no pair.

        Args:
            group_of: function from documents to the numbers of their values; negative for a missing value.
        """
        own = rows.document >= 0
        row = np.repeat(np.arange(rows.groups), np.diff(rows.offsets))[own]
        length = rows.length[own]
        self._pairs += _pairs_within(row, length)
        group = group_of(rows.document[own])
        known = group >= 0
        self._alike += _pairs_within(_numbered(row[known], group[known]), length[known])

    def result(self) -> Neighbours:
        """Sum up the rows so far."""
        return Neighbours(self._field, self._pairs, self._alike, ratio(self._alike, self._pairs))


def _numbered(row: I64, group: Ints) -> I64:
    """Number each pair of a row and a group."""
    order = np.lexsort((group, row))
    row, group = row[order], group[order]
    changed = np.zeros(len(row), np.bool_)
    changed[1:] = (row[1:] != row[:-1]) | (group[1:] != group[:-1])
    numbers = np.empty(len(row), np.int64)
    numbers[order] = np.cumsum(changed)
    return numbers


def _pairs_within(group: I64, length: I64) -> int:
    """Count the pairs of tokens in the same group.

    Args:
        group: of each segment, from 0.
        length: of each segment.
    """
    tokens = np.bincount(group, weights=length).astype(np.int64)
    return int((tokens * (tokens - 1) // 2).sum())
