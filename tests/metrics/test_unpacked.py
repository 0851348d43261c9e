"""Documents that are not packed: the expectation is that of all batches."""

from __future__ import annotations

from itertools import combinations
from math import isclose

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from packtool.metrics.lengths import LengthCounts
from packtool.metrics.unpacked import unpacked


@given(st.lists(st.integers(1, 9), min_size=1, max_size=8), st.integers(1, 10))
def test_the_mean_over_all_batches(lengths: list[int], batch_size: int) -> None:
    found = unpacked(LengthCounts.of(np.array(lengths)), batch_size)
    assert found is not None
    batches = list(combinations(lengths, min(batch_size, len(lengths))))
    assert isclose(found.mean_row, sum(map(max, batches)) / len(batches), rel_tol=1e-8)
    padded = sum(max(batch) * len(batch) - sum(batch) for batch in batches)
    assert isclose(found.padding_ratio, padded / sum(max(b) * len(b) for b in batches), rel_tol=1e-7, abs_tol=1e-8)


def test_no_documents() -> None:
    assert unpacked(LengthCounts.of(np.zeros(0, np.int64)), 4) is None
