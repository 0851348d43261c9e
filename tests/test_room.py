"""Large arrays lie where the caller wants them, and come out the same in any blocks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from packtool import room


def test_large_arrays_are_made_by_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "LARGE", 80)
    made = []

    def make(count: int, dtype: type) -> np.ndarray:
        made.append(count)
        return np.zeros(count, dtype)

    with room.made_by(make):
        assert room.empty(10, np.int64).tolist() == [0] * 10
        assert len(room.empty(9, np.int64)) == 9
    room.empty(10, np.int64)
    assert made == [10]


@given(st.lists(st.integers(0, 1000)), st.integers(1, 5))
def test_any_blocks(items: list[int], block: int) -> None:
    values = np.array(items, np.uint32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(room, "BLOCK", block)
        part = lambda first, last: values[first:last]  # noqa: E731
        assert room.filled(len(values), np.int64, part).tolist() == items
        assert room.totals(len(values), part).tolist() == [0, *np.cumsum(items, dtype=np.int64).tolist()]
        chosen = room.where(len(values), lambda a, b: values[a:b] % 3 == 0, np.uint32)
        assert chosen.tolist() == [number for number, item in enumerate(items) if item % 3 == 0]
        assert room.joined([values, values], np.int64, [0, 7]).tolist() == items + [item + 7 for item in items]
