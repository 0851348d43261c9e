"""Measure how alike the segments of a row are. Greedy packing makes them alike, a random order would not.

Rows that each hold one length look alike inside and differ from each other, which is what shuffling is there to avoid.
Let x be the log of a segment's length (a document's segment in a row, its EOS included; padding and inserted EOS are
not segments). The variance of x over all segments has a part between rows and a part inside them:

    sum (x - mean)^2  =  sum over rows n_r (mean_r - mean)^2  +  the rest

with n_r segments and mean_r in row r. The first part, as a share of the whole, is the homogeneity of rows: 1 where each
row holds one length, 0 where all rows have the same mean. If the same segments were put at random into rows of the same
n_r, it would be (rows - 1) / (segments - 1) on average, whatever the lengths.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from packtool.planning.metrics.ratios import ratio
from packtool.planning.plan import I64, Segments, offsets_of

_STEPS = 1 << 12  # of the log of a length to base 2: whole numbers add up to the same, whatever the batches


@dataclass(frozen=True, slots=True)
class Homogeneity:
    """How alike the segments of a row are.

    Attributes:
        rows: rows with segments.
        segments: segments of documents in them.
        between_rows: share of the variance of log length that lies between rows; 0 where all lengths are equal.
        random_rows: the same for random rows with the same numbers of segments, on average.
        rows_of_several: rows of more than two segments.
        equal_but_one: share of these rows in which all lengths, or all but one, are equal.
    """

    rows: int
    segments: int
    between_rows: float
    random_rows: float
    rows_of_several: int
    equal_but_one: float


@dataclass
class HomogeneityCounts:
    """Sums that homogeneity follows from, added batch by batch; sums of parts are joined by ``+=``.

    >>> one = np.array
    >>> counts = HomogeneityCounts()
    >>> lengths = one([4, 4, 4, 1, 1, 1, 9])
    >>> counts.add(Segments(np.arange(7), np.zeros(7, np.int64), lengths, np.zeros(7, np.int64), one([0, 3, 7])))
    >>> rows = counts.result()
    >>> round(rows.between_rows, 3), round(rows.random_rows, 3), rows.rows_of_several, rows.equal_but_one
    (0.249, 0.167, 2, 1.0)
    """

    rows: int = 0
    segments: int = 0
    rows_of_several: int = 0
    equal_but_one: int = 0
    log: int = 0
    """Sum of the logs of all segments."""
    log_squares: int = 0
    """Sum of their squares."""
    row_squares: int = 0
    """Sum over rows of the square of their sum of logs, divided by their segments."""

    def add(self, rows: Segments) -> None:
        """Count whole rows without padding and inserted EOS."""
        length, counts, first = rows.length, np.diff(rows.offsets), rows.offsets[:-1]
        if not len(length):
            return
        if not counts.all():  # a row of filler alone does not count
            some = counts > 0
            counts, first = counts[some], first[some]
        # Logs are whole numbers, so that sums are the same in any order and batches.
        log = _KNOWN_LOGS.take(length) if int(length.max()) < len(_KNOWN_LOGS) else _logs(length)
        before = offsets_of(log)
        of_row = before.take(first + counts) - before.take(first)
        mean = _quotient(of_row, counts)
        rest = of_row - mean * counts
        self.rows += len(counts)
        self.segments += len(log)
        self.log += int(of_row.sum())
        self.log_squares += int(log @ log)
        # Of s = mean * n + rest, s² / n is (s + rest) * mean + rest² / n: the square may exceed 64 bits, this doesn't.
        self.row_squares += int(((of_row + rest) * mean + _quotient(rest * rest, counts)).sum())
        several = counts > 2
        self.rows_of_several += int(np.count_nonzero(several))
        self.equal_but_one += int(np.count_nonzero(equal_but_one(length, first[several], counts[several])))

    def __iadd__(self, other: HomogeneityCounts) -> HomogeneityCounts:
        """Add the counts of other rows."""
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)
        return self

    def result(self) -> Homogeneity:
        """Sum up the rows so far."""
        # Both parts times the number of segments, in whole numbers.
        whole = self.log_squares * self.segments - self.log * self.log
        between = self.row_squares * self.segments - self.log * self.log
        return Homogeneity(
            rows=self.rows,
            segments=self.segments,
            between_rows=min(1.0, max(0, between) / whole) if whole else 0.0,
            random_rows=ratio(self.rows - 1, self.segments - 1) if self.segments > 1 else 0.0,
            rows_of_several=self.rows_of_several,
            equal_but_one=ratio(self.equal_but_one, self.rows_of_several),
        )


def equal_but_one(values: npt.NDArray[Any], first: I64, counts: I64) -> npt.NDArray[np.bool_]:
    """Return whether the values of each group are equal, or all but one of them: (groups).

    From first to last, the values of such a group change nowhere, once next to an end, or twice in a row.

    Args:
        values: of all groups.
        first: where each group begins.
        counts: number of values in each group, at least three.

    >>> equal_but_one(np.array([4, 4, 9, 4, 1, 2, 3, 3]), np.array([0, 4]), np.array([4, 4]))
    array([ True, False])
    """
    last = first + counts - 1
    change = values[1:] != values[:-1]
    changes = _inside(change, first, last)
    alike: npt.NDArray[np.bool_] = (changes == 0) | (changes == 1) & (change[first] | change[last - 1])
    twice = np.flatnonzero((changes == 2) & (values[first] == values[last]))
    if len(twice):
        alike[twice] = _inside(change[1:] & change[:-1], first[twice], last[twice] - 1) == 1
    return alike


def _inside(marks: npt.NDArray[np.bool_], first: I64, last: I64) -> I64:
    """Count the marks that are set in each range ``first:last``."""
    before = offsets_of(marks.view(np.uint8))
    inside: I64 = before.take(last) - before.take(first)
    return inside


def _quotient(values: I64, counts: I64) -> I64:
    """Divide numbers below 2^53 to whole quotients: floats round up to no whole number, and are three times as fast."""
    whole: I64 = (values / counts).astype(np.int64)
    return whole


def _logs(length: I64) -> I64:
    """Return logs of lengths as whole steps."""
    steps: I64 = np.rint(np.log2(length) * _STEPS).astype(np.int64)
    return steps


_KNOWN_LOGS: I64 = np.append(0, _logs(np.arange(1, 1 << 14)))
