"""Filters keep what is within their bounds, and count what they drop."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from packtool.corpus.filters import DocumentCounts, Filters


@given(st.text(st.sampled_from("ab \n\u00a0")), st.integers(0, 6), st.integers(0, 10), st.integers(0, 10))
def test_filters(text: str, min_words: int, min_chars: int, max_chars: int) -> None:
    keep = len(text.split()) >= min_words and min_chars <= len(text) <= max_chars
    filters = Filters(min_words, min_chars, max_chars)
    assert filters.keeps(text) == keep
    assert filters.kept([text]) == [0] * keep
    counted = DocumentCounts()
    counted.add([text], np.array([5]))
    assert counted == DocumentCounts(1, len(text.split()), len(text), 5)
