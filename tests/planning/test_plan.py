"""Segments against lists of lists, and plans of windows as one plan."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from packtool.planning.plan import Segments, index_type
from tests.segments import Piece, listed, segments

GROUPS = st.lists(st.lists(st.tuples(*[st.integers(0, 9)] * 4), max_size=4), max_size=6)


@given(GROUPS, st.data())
def test_segments_are_groups_of_rows(groups: list[list[Piece]], data: st.DataObject) -> None:
    rows = segments(groups)
    assert listed(rows) == groups
    assert (len(rows), rows.groups) == (sum(map(len, groups)), len(groups))
    assert rows.tokens().tolist() == [sum(each[2] for each in group) for group in groups]
    assert rows.group_of().tolist() == [number for number, group in enumerate(groups) for _ in group]
    first, last = (data.draw(st.integers(-7, 7)) for _ in range(2))
    assert listed(rows[first:last]) == groups[first:last]
    assert listed(Segments.concatenate([rows, rows[:1], rows])) == [*groups, *groups[:1], *groups]


def test_segments_are_sliced_without_steps() -> None:
    with pytest.raises(ValueError, match="consecutive groups"):
        segments([[], []])[::2]


def test_indices_take_four_bytes_while_they_can() -> None:
    assert (index_type((1 << 32) - 1), index_type(1 << 32)) == (np.uint32, np.int64)
