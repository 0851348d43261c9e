"""`length-buckets`: a worked example."""

import numpy as np

from packtool.planning.packing import PackOptions, plan
from tests.planning.packing.tokens import render


def test_length_buckets_join_and_cut_documents_of_like_length():
    lengths = [3, 7, 4, 9, 2]
    small, large = plan("length-buckets", np.array(lengths), PackOptions(buckets=(8, 4)))
    assert render(small, lengths) == ["a0 a1 aE c0", "c1 c2 cE e0", "eE . . ."]
    assert render(large, lengths) == ["b0 b1 b2 b3 b4 b5 bE d0", "d1 d2 d3 d4 d5 d6 d7 dE"]
    small, large = plan("length-buckets", np.array(lengths), PackOptions(buckets=(8, 4), remainder="drop"))
    assert (small.rows, small.dropped, small.eos_omitted) == (2, 0, 1)
