from __future__ import annotations

import re

import pytest

from packtool.report.page import charts
from packtool.report.page.axes import WIDTH
from packtool.report.page.charts import Bin


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
