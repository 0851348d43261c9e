"""First fit through the tree of rooms: the bins of a plain walk over all bins."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from packtool.packing.bins.first_fit import first_fit_in_order


@settings(max_examples=400, deadline=None)
@given(st.integers(1, 60).flatmap(lambda most: st.tuples(st.just(most), st.lists(st.integers(1, most), max_size=120))))
def test_item_by_item(case):
    capacity, lengths = case
    room, expected = [], []
    for length in lengths:
        bin = next((bin for bin, left in enumerate(room) if left >= length), len(room))
        if bin == len(room):
            room.append(capacity)
        room[bin] -= length
        expected.append(bin)
    assert first_fit_in_order(np.array(lengths, np.int64), capacity).tolist() == expected
