"""Distributions of lengths, against sorted lists; documents that are not packed, against all batches."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from packtool.planning.metrics.lengths import LengthCounts


@given(st.lists(st.one_of(st.integers(0, 40), st.integers(65000, 70000), st.integers(0, 2**32 - 1))))
def test_counts(lengths: list[int]) -> None:
    counts = LengthCounts.of(np.array(lengths, np.uint32))
    assert counts.documents == len(lengths)
    assert counts.tokens == sum(lengths)
    assert counts.max == max(lengths, default=0)
    for limit in (0, 7, 66000):
        assert counts.tokens_over(limit) == sum(n for n in lengths if n > limit)
    ordered = sorted(lengths) or [0]
    for share in (0.01, 0.5, 0.99, 1.0):
        assert counts.quantile(share) == ordered[max(0, int(np.ceil(share * len(lengths))) - 1)]


@given(st.lists(st.integers(0, 10**6), min_size=1))
def test_histogram_holds_every_document_once(lengths: list[int]) -> None:
    bins = LengthCounts.of(np.array(lengths)).histogram()
    assert [b[0] for b in bins[1:]] == [b[1] + 1 for b in bins[:-1]]
    for first, last, documents, tokens in bins:
        inside = [n for n in lengths if first <= n <= last]
        assert (documents, tokens) == (len(inside), sum(inside))
    assert sum(b[2] for b in bins) == len(lengths)
    assert bins[0][2]
    assert bins[-1][2]
