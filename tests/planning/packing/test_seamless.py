"""`seamless`: the bins item by item, sliding rows, exact fractions."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

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
