"""`decompose`: worked examples, and what is dropped."""

import numpy as np

from packtool.planning.packing import PackOptions, plan
from tests.planning.packing.tokens import render


def test_documents_decompose_into_powers_of_two():
    lengths = [23, 4]
    plans = plan("decompose", np.array(lengths), PackOptions(sequence_length=8))
    assert [only.sequence_length for only in plans] == [1, 2, 4, 8]
    assert [render(only, lengths) for only in plans] == [
        ["aE"],
        ["a20 a21"],
        ["a16 a17 a18 a19", "b0 b1 b2 bE"],
        ["a0 a1 a2 a3 a4 a5 a6 a7", "a8 a9 a10 a11 a12 a13 a14 a15"],
    ]


def test_what_is_below_the_smallest_bucket_is_dropped_and_counted():
    lengths = [23, 4]
    plans = plan("decompose", np.array(lengths), PackOptions(sequence_length=10, min_bucket=3))
    assert [(only.sequence_length, only.rows) for only in plans] == [(4, 2), (8, 2)]
    assert (plans[0].dropped, plans[0].eos_omitted) == (2, 1)
