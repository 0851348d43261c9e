"""Segments against lists of lists, and plans of windows as one plan."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from packtool.planning.arrays import IN_MEMORY
from packtool.planning.packing.plans import Bins, RowsPlan
from packtool.planning.plan import Segments, between, index_type, offsets_of
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


@given(st.lists(st.lists(st.integers(1, 8), min_size=1, max_size=5), min_size=1, max_size=4), st.data())
def test_joined_plans_have_the_rows_of_each(windows: list[list[int]], data: st.DataObject) -> None:
    plans, firsts, expected = [], [], []
    for lengths in windows:
        firsts.append(len(expected))
        expected += [(len(expected) + number, 0, length, 0) for number, length in enumerate(lengths)]
        rows = np.arange(len(lengths) + 1)
        plans.append(RowsPlan(8, np.array(lengths), bins=Bins(rows[:-1], rows), whole=True, dropped=1))
    joined = RowsPlan.join(plans, np.concatenate(windows), firsts, IN_MEMORY)
    assert (joined.rows, joined.dropped) == (len(expected), len(windows))
    units = data.draw(st.permutations(range(joined.units)))
    assert listed(joined.segments(np.array(units))) == [[expected[unit]] for unit in units]


@given(st.lists(st.integers(1, 9), min_size=1, max_size=9), st.data())
def test_what_lies_between_two_places_of_a_stream(lengths: list[int], data: st.DataObject) -> None:
    stream = [(thing, place) for thing, length in enumerate(lengths) for place in range(length)]
    bounds = data.draw(st.lists(st.integers(0, len(stream)), min_size=2, max_size=6).map(sorted))
    begin, end = np.array(bounds[:-1]), np.array(bounds[1:])
    some = begin < end
    things, starts, counts, offsets = between(offsets_of(np.array(lengths)), begin[some], end[some])
    for number, (a, b) in enumerate(zip(begin[some], end[some], strict=True)):
        mine = range(offsets[number], offsets[number + 1])
        found = [(int(things[i]), int(starts[i]) + n) for i in mine for n in range(counts[i])]
        assert found == stream[a:b]


def test_indices_take_four_bytes_while_they_can() -> None:
    assert (index_type((1 << 32) - 1), index_type(1 << 32)) == (np.uint32, np.int64)
