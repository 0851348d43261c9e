"""From runs of bins to documents, and the sort before it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from packtool.planning.packing.bins.greedy import best_fit, first_fit
from packtool.planning.packing.bins.runs import assign, stable_order
from tests.examples import examples


@pytest.mark.parametrize("fit", [first_fit, best_fit])
@examples(60)
@given(data=st.data())
def test_large_runs_and_small_ones_are_assigned_alike(fit, data):
    """Thousands of items, so that runs are copied as blocks, in batches, and one by one."""
    capacity = data.draw(st.integers(2, 200))
    seed = data.draw(st.integers(0, 1 << 32))
    few = np.random.default_rng(seed).integers(1, capacity + 1, data.draw(st.integers(1, 30)))
    lengths = np.random.default_rng(seed + 1).choice(few, 9000)
    counts = np.bincount(lengths, minlength=capacity + 1)
    keys = (capacity - lengths).astype(np.uint16)
    order = stable_order(keys, counts[::-1])
    np.testing.assert_array_equal(order, np.argsort(keys, kind="stable"))
    runs = fit(counts, capacity)
    placed, offsets = assign(order, counts, runs)
    assert (np.bincount(placed, minlength=len(lengths)) == 1).all()
    run = np.repeat(np.arange(len(runs.bins)), runs.bins)
    totals = np.add.reduceat(lengths[placed], offsets[:-1])
    np.testing.assert_array_equal(totals, runs.tokens()[run])
    assert totals.max() <= capacity
    # Items of one length are taken in their own order within each run, and from one run to the next in that of `first`.
    inside = np.arange(len(placed)) - offsets[:-1].repeat(np.diff(offsets))
    assert (np.diff(lengths[placed])[inside[1:] > 0] <= 0).all()


def test_keys_beyond_16_bits_are_sorted_in_two_passes():
    keys = np.random.default_rng(0).choice(np.array([0, 5, 65535, 65536, 65541, 200_000], np.uint32), 300_000)
    order = stable_order(keys, np.bincount(keys))
    np.testing.assert_array_equal(order, np.argsort(keys, kind="stable"))
