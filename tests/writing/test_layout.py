"""Units to rows: padding, joining, merging, atoms that move."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from packtool.planning.packing.plans import Bins, RowsPlan
from packtool.planning.plan import PADDING, Plan, Segments, offsets_of, pad, ranges
from packtool.planning.plan import Ints as Numbers
from packtool.writing.layout import Layout, join, merge
from tests.segments import listed, segments


class Grid(Plan):
    """Atoms of given numbers of units; unit u holds document u, whole."""

    def __init__(self, sizes: list[int], *, last_stays: bool = False) -> None:
        super().__init__(
            sequence_length=4,
            unit=4,
            units=sum(sizes),
            atom_offsets=offsets_of(np.array(sizes)),
            last_atom_stays=last_stays,
        )

    def segments(self, units: Numbers) -> Segments:
        return segments([[(unit, 0, 4, 0)] for unit in units.tolist()])


def test_padding_goes_where_a_unit_falls_short_and_where_the_last_row_does() -> None:
    units = segments([[(0, 0, 3, 0)], [(1, 0, 1, 0), (2, 0, 2, 0)], [(3, 0, 2, 0)]])
    assert listed(join(pad(units, 3), unit=3, sequence_length=6)) == [
        [(0, 0, 3, 0), (1, 0, 1, 0), (2, 0, 2, 0)],
        [(3, 0, 2, 0), (PADDING, 0, 4, 0)],
    ]


def test_pieces_that_continue_each_other_become_one_but_not_across_rows() -> None:
    repeated = [(5, 0, 2, 0), (5, 2, 3, 1)]  # does not continue the one before
    rows = segments([[(5, 0, 2, 0), (5, 2, 3, 0), (5, 6, 1, 0)], [(5, 7, 2, 0)], repeated])
    assert listed(merge(rows)) == [[(5, 0, 5, 0), (5, 6, 1, 0)], [(5, 7, 2, 0)], repeated]


def test_atoms_of_varying_size_move_as_wholes() -> None:
    layout = Layout(Grid([1, 3, 2]), np.array([2, 0, 1]))
    assert layout.units(np.arange(6)).tolist() == [4, 5, 0, 1, 2, 3]
    assert layout.segments(0, 6).document.tolist() == [4, 5, 0, 1, 2, 3]
    assert [layout.atoms(0, 2).tolist(), layout.atoms(2, 6).tolist()] == [[0], [0, 1]]  # type: ignore[union-attr]


def test_an_incomplete_last_atom_stays_last() -> None:
    layout = Layout(Grid([1, 1, 1, 1], last_stays=True), np.array([2, 0, 1]))
    assert layout.units(np.arange(4)).tolist() == [2, 0, 1, 3]


@given(st.lists(st.lists(st.integers(1, 9), min_size=1, max_size=5), max_size=8), st.data())
def test_any_range_of_rows_is_a_slice_of_all_rows(bins: list[list[int]], data: st.DataObject) -> None:
    lengths = np.array([n for each in bins for n in each], np.int64)
    longest = max((sum(each) for each in bins), default=1)
    offsets = offsets_of(np.array([len(each) for each in bins], np.int64))
    plan = RowsPlan(longest, lengths, bins=Bins(np.arange(len(lengths)), offsets), whole=True)
    order = np.array(data.draw(st.permutations(range(len(bins)))), np.int64)
    layout = Layout(plan, order)
    whole = layout.segments(0, layout.rows)
    assert whole.tokens().tolist() == [longest] * layout.rows
    first = data.draw(st.integers(0, layout.rows))
    last = data.draw(st.integers(first, layout.rows))
    assert listed(layout.segments(first, last)) == listed(whole)[first:last] == listed(whole[first:last])


def test_ranges_with_empty_groups() -> None:
    assert ranges(np.array([3, 9, 5]), np.array([2, 0, 1]), np.array([0, 2, 2, 3])).tolist() == [3, 4, 5]
