"""Charts: bars, dots and rows lie where their values are, on scales with few ticks."""

import re

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from packtool.planning.packing import PackOptions, plan
from packtool.report import charts
from packtool.report.charts import LEFT, WIDTH, Bin, horizontal, log_ticks, round_ticks, row_picture
from packtool.report.dataset_report import sample_rows
from packtool.rows.layout import Layout


@given(st.tuples(st.floats(0, 1e12), st.floats(0, 1e12)).map(sorted))
def test_ticks_lie_in_their_range(bounds: list[float]) -> None:
    low, high = bounds
    assume(low == high or high - low > 1e-6)
    ticks = round_ticks(low, high)
    assert 1 <= len(ticks) <= 7
    near = (high - low) / 1e6  # what nobody sees
    assert all(low - near <= tick <= high + near for tick in ticks)


def test_log_ticks_are_few() -> None:
    assert log_ticks(1, 2**31)[:2] == [1.0, 32.0]
    assert len(log_ticks(1, 2**31)) <= 7


def test_a_scale_of_one_value_is_in_the_middle() -> None:
    assert horizontal(5, 5)(5) == pytest.approx((LEFT + WIDTH - 12) / 2)


def test_bars_are_as_high_as_their_values() -> None:
    drawing = charts.histogram("t", [Bin(1, 1, 10), Bin(2, 2, 5), Bin(3, 3, 0)], label="x", unit="n")
    heights = [float(h) for h in re.findall(r'class="bar".*?height="([\d.]+)"', drawing)]
    assert heights[0] == pytest.approx(2 * heights[1], rel=0.01)
    assert heights[2] == 0


def test_marks_lie_where_their_length_is() -> None:
    bins = [Bin(2**i, 2 ** (i + 1) - 1, 1) for i in range(10)]
    drawing = charts.histogram("t", bins, label="x", unit="n", marks=[64], logarithmic=True)
    mark = float(re.findall(r'class="mark" x1="([\d.]+)"', drawing)[0])
    bar = float(re.findall(r'class="bar" x="([\d.]+)"', drawing)[6])
    assert mark == pytest.approx(bar, abs=2)


def test_dots_lie_at_their_shares_each_in_its_row() -> None:
    drawing = charts.dots(
        "t", [("a", [("x", "c0", 0.25), ("y", "c1", 0.0)]), ("b", [("x", "c0", 1.0), ("y", "c1", 0.25)])]
    )
    dots = re.findall(r'class="dot (c\d)" cx="([\d.]+)" cy="([\d.]+)"', drawing)
    (quarter, none, whole, second) = [(float(x), float(y)) for _, x, y in dots]
    assert quarter[0] - none[0] == pytest.approx((whole[0] - none[0]) / 2)
    assert second[0] == quarter[0]
    assert none[1] < whole[1]
    assert whole[0] <= WIDTH
    assert "<title>a: x 25.00%</title>" in drawing


@given(most=st.floats(1e-4, 1))
def test_labels_of_shares_do_not_touch(most: float) -> None:
    drawing = charts.dots("t", [("a-name-that-is-long", [("x", "c0", most)])])
    places = [float(x) for x in re.findall(r'class="tick" x="([\d.]+)"', drawing)]
    assert len(places) >= 2
    assert np.diff(places).min() >= 36
    assert ">a-name-that-is-l…</text>" in drawing
    assert "<title>a-name-that-is-long: x " in drawing


def test_parts_share_one_scale() -> None:
    drawing = charts.stacked(
        "t", [("a", [("x", "placed", 30), ("y", "padding", 10)]), ("b", [("x", "placed", 20)])], "t"
    )
    widths = [float(w) for w in re.findall(r'class="part .*?width="([\d.]+)"', drawing)]
    assert widths == [WIDTH * 3 / 4, WIDTH / 4, WIDTH / 2]


def test_names_are_escaped() -> None:
    drawing = charts.stacked('"t"', [("<a>", [("x & y", "placed", 1)])], "t")
    assert "&lt;a&gt;" in drawing
    assert "x &amp; y" in drawing
    assert 'aria-label="&quot;t&quot;"' in drawing


def rows_of(lengths: list[int], strategy: str, sequence_length: int) -> str:
    array = np.array(lengths)
    (whole,) = plan(strategy, array, PackOptions(sequence_length=sequence_length))
    layout = Layout(whole)
    return row_picture("rows", sample_rows(layout.segments(0, layout.rows), array))


def test_blocks_are_as_wide_as_their_pieces_and_coloured_by_length() -> None:
    drawing = rows_of([16, 12, 4], "concat", 16)
    widths = [float(width) for width in re.findall(r'class="piece \w+" .*?width="([\d.]+)"', drawing)]
    assert widths == pytest.approx([WIDTH, WIDTH * 3 / 4, WIDTH / 4], abs=0.5)
    assert re.findall(r'class="piece (\w+)"', drawing) == ["l1", "l1", "l0"]
    assert "cut" not in drawing


def test_cut_ends_are_marked_and_a_missing_eos_is_none() -> None:
    assert rows_of([20], "concat", 8).count('class="cut"') == 4
    assert rows_of([9], "bfd", 8).count('class="cut"') == 0


def test_many_short_pieces_of_one_colour_are_one_block() -> None:
    assert rows_of([2] * 2000, "bfd", 4000).count("<rect") == 1
