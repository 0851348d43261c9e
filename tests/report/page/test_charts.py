from __future__ import annotations

import re

import pytest

from packtool.report.page import charts
from packtool.report.page.axes import HEIGHT, LEFT, WIDTH
from packtool.report.page.charts import Bin, Series


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


def test_names_of_a_scatter_do_not_overlap_and_stay_inside() -> None:
    points = [Series(f"strategy-{i}", i, [(0.001 * (i % 3), 0.3 + 0.002 * i)]) for i in range(9)]
    drawing = charts.scatter("t", points, x_label="x", y_label="y")
    names = re.findall(r'<text class="name" x="([\d.]+)" y="([\d.]+)".*?>(.*?)</text>', drawing)
    boxes = [(float(x), float(y), float(x) + 5.6 * len(n), float(y) + 12) for x, y, n in names]
    for i, (a, b, c, d) in enumerate(boxes):
        assert a >= LEFT
        assert c <= WIDTH
        assert 0 <= b <= HEIGHT
        for e, f, g, h in boxes[:i]:
            assert not (a < g and e < c and b < h and f < d)


def test_points_at_one_place_share_their_name() -> None:
    drawing = charts.scatter(
        "t", [Series("bfd", 0, [(0.1, 0.2)]), Series("ffd", 1, [(0.1, 0.2)])], x_label="x", y_label="y"
    )
    assert ">bfd, ffd</text>" in drawing


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
