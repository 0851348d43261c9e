"""`seamless`: the bins item by item, sliding rows, exact fractions."""

from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from packtool.planning.packing import PackOptions, plan
from tests.examples import examples
from tests.planning.packing import oracles
from tests.planning.packing.cases import cases
from tests.planning.packing.tokens import bins_of, one, render


@examples(250)
@given(cases(), st.data())
def test_item_by_item(case, data):
    size, lengths = case
    extra = data.draw(st.sampled_from([0, 1, size // 4, size - 1]))
    repetition = data.draw(st.sampled_from([Fraction(0), Fraction(1, 10), Fraction("0.3"), Fraction(1)]))
    only = one("seamless", lengths, sequence_length=size, extra_capacity=extra, max_repetition=repetition)
    assert bins_of(only) == oracles.seamless(lengths, size, repetition, extra)


def test_bins_below_a_row_are_joined_and_cut():
    lengths = [5, 5, 5]
    only = one("seamless", lengths, sequence_length=8, extra_capacity=0)
    assert render(only, lengths) == ["a0 a1 a2 a3 aE b0 b1 b2", "b3 bE c0 c1 c2 c3 cE ."]
    only = one("seamless", lengths, sequence_length=8, extra_capacity=0, remainder="drop")
    assert render(only, lengths) == ["a0 a1 a2 a3 aE b0 b1 b2"]
    assert (only.dropped, only.eos_omitted) == (5, 2)


def test_sliding_rows_overlap_evenly():
    lengths = [19]
    only = one("seamless", lengths, sequence_length=8, max_repetition=Fraction("0.4"))
    assert render(only, lengths) == [
        "a0 a1 a2 a3 a4 a5 a6 a7",
        "a5' a6' a7' a8 a9 a10 a11 a12",
        "a11' a12' a13 a14 a15 a16 a17 aE",
    ]


@examples(100)
@given(st.lists(st.integers(1, 60), max_size=40), st.sampled_from(["pad", "drop"]), st.sampled_from([1 << 34, 100]))
def test_rows_are_counted_by_the_step_that_made_them(sizes, remainder, window):
    lengths = np.array(sizes, np.int64)
    options = PackOptions(sequence_length=10, extra_capacity=2, remainder=remainder, window_tokens=window)
    (only,) = plan("seamless", lengths, options)
    assert sum(only.stages.values()) == only.rows
    rows = only.segments(np.arange(only.rows))
    overlapping = set(rows.document[rows.repeated > 0].tolist())
    alone = np.diff(rows.offsets) == 1
    long = [int(rows.document[first]) for first in rows.offsets[:-1][alone & (rows.tokens() == 10)]]
    assert only.stages["overlapping"] == sum(document in overlapping for document in long)
    assert only.stages["whole"] == sum(document not in overlapping for document in long)
    if window > 100:
        # Bins of a row or more are rows. What is left lies in fewer than all but the last of them could hold.
        assert only.stages["joined"] <= 1 + sum(length % 10 for length in sizes) // 10
