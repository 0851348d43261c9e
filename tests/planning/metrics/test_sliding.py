from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from packtool.planning.metrics.lengths import LengthCounts
from packtool.planning.metrics.sliding import slides, sliding

# Seamless Packing, Table 13: PubMed articles by length, in steps of 2048 tokens; the last row is open.
PUBMED = [3906, 4095, 1789, 763, 355, 150, 73, 47, 90]


def test_predicts_what_the_paper_predicts() -> None:
    middle = np.array([2048 * k + 1024 for k in range(1, 10)])
    found = sliding(LengthCounts(middle, np.array(PUBMED)), 2048, Fraction(3, 10))
    assert int(found.predicted_texts) == 6716
    assert round(found.predicted_tokens / 1e6, 1) == 2.6


def test_theory_meets_counts_where_lengths_are_uniform() -> None:
    counts = LengthCounts(np.arange(101, 1001), np.full(900, 3))
    for twentieth in range(1, 11):
        found = sliding(counts, 100, Fraction(twentieth, 20))
        assert found.texts == pytest.approx(found.predicted_texts, rel=0.05)
        assert found.tokens == pytest.approx(found.predicted_tokens, rel=0.1)


@given(st.integers(2, 40), st.integers(1, 20), st.lists(st.integers(1, 400), min_size=1))
def test_counts_are_those_of_the_definition(size: int, twentieth: int, lengths: list[int]) -> None:
    ratio = Fraction(twentieth, 20)
    texts = tokens = 0
    for length in (n for n in lengths if n > size):
        rows = length // size
        allowed = -((-rows * ratio * size) // 1)
        if length % size and length + allowed >= (rows + 1) * size:
            texts += 1
        else:
            tokens += length % size
    found = sliding(LengthCounts.of(np.array(lengths)), size, ratio)
    assert (found.texts, found.tokens) == (texts, tokens)


def test_worked_example() -> None:
    # r_max = 0.1, L = 10, n = 3 allows 3 tokens of overlap: 37 tokens make four rows, 36 do not.
    lengths = np.array([36, 37])
    assert slides(lengths, 10, Fraction("0.1")).tolist() == [False, True]
    # An exact fraction: binary floating point would make it a little more, and allow 4.
    assert slides(lengths, 10, Fraction("0.1000000000000000000000000000001")).tolist() == [True, True]


@pytest.mark.parametrize("digits", [10, 30, 300])
def test_ratios_of_many_digits(digits: int) -> None:
    counts = LengthCounts(np.array([1200, 2500, 40_000]), np.array([1 << 20, 1 << 21, 1 << 22]))
    near = sliding(counts, 1024, Fraction("0." + "3" * digits))
    third = sliding(counts, 1024, Fraction(1, 3))
    assert near.predicted_texts == pytest.approx(third.predicted_texts)
    assert near.predicted_tokens == pytest.approx(third.predicted_tokens)
    assert (near.texts, near.tokens) == (third.texts, third.tokens)
    assert near.predicted_texts >= 0
    assert near.predicted_tokens >= 0
