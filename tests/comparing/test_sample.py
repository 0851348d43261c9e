"""Rows to look at: a few, evenly spread, of what a candidate makes of the first documents."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from packtool.comparing.candidates import Candidate
from packtool.comparing.trial import PICTURED, sample_rows, spread_rows
from packtool.packing import PackOptions
from packtool.plan import Segments


def one_a_row(first: int, last: int) -> Segments:
    """Row n holds document n, whole."""
    rows = np.arange(first, last)
    return Segments(rows, np.zeros_like(rows), np.full_like(rows, 4), np.zeros_like(rows), np.arange(last - first + 1))


@pytest.mark.parametrize(
    ("rows", "expected"),
    [(0, []), (1, [0]), (4, [0, 1, 2, 3]), (6, [0, 1, 2, 3, 4, 5]), (101, [0, 20, 40, 60, 80, 100])],
)
def test_rows_are_evenly_spread_from_the_first_to_the_last(rows: int, expected: list[int]) -> None:
    spread = spread_rows(one_a_row, rows)
    assert spread.document.tolist() == expected
    assert spread.offsets.tolist() == list(range(len(expected) + 1))


def test_of_several_row_lengths_the_one_with_most_tokens() -> None:
    lengths = np.array([8] * 10 + [32] * 9)
    rows = sample_rows(lengths, Candidate("buckets", PackOptions(buckets=(8, 32), padding_threshold=Fraction(1, 2))))
    assert rows.groups == PICTURED
    assert rows.tokens().tolist() == [32] * PICTURED
