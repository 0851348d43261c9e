"""The atom shuffle: orders whole and in parts, and one order from another."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from packtool.planning.shuffling.atom import reorder


@given(st.permutations(range(9)), st.permutations(range(9)))
def test_reorder(stored: list[int], wanted: list[int]) -> None:
    data = np.array(stored)
    assert data[reorder(data, np.array(wanted))].tolist() == wanted
