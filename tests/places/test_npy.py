"""Pairs of items are read from several arrays as from each."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from packtool.places.npy import Scattered


@given(sizes=st.lists(st.integers(0, 9), min_size=1, max_size=6).filter(lambda sizes: max(sizes) > 1), data=st.data())
def test_pairs_of_arrays_anywhere_are_read_as_from_each(sizes: list[int], data: st.DataObject) -> None:
    arrays = [np.arange(size) + 100 * number for number, size in enumerate(sizes)]
    there = st.sampled_from([(number, place) for number, size in enumerate(sizes) for place in range(size - 1)])
    wanted = np.array(data.draw(st.lists(there)), np.int64).reshape(-1, 2)
    first, second = Scattered(arrays)(wanted[:, 0], wanted[:, 1])
    assert first.tolist() == [arrays[number][place] for number, place in wanted.tolist()]
    assert second.tolist() == [arrays[number][place + 1] for number, place in wanted.tolist()]


def test_items_that_do_not_lie_at_multiples_of_their_size_are_refused() -> None:
    odd = np.zeros(17, np.uint8)[1:].view(np.int64)
    with pytest.raises(ValueError, match="aligned"):
        Scattered([np.zeros(1, np.int64), odd])
    with pytest.raises(ValueError, match="contiguous"):
        Scattered([np.zeros(6, np.int64)[::2]])
