"""Scales and ticks of charts."""

from __future__ import annotations

import pytest

from packtool.report.page.axes import LEFT, WIDTH, horizontal, log_ticks, round_ticks


@pytest.mark.parametrize(("low", "high"), [(0, 1), (0, 0), (3, 1e9), (0, 1e-5), (0.05, 0.5)])
def test_ticks_lie_in_their_range(low: float, high: float) -> None:
    ticks = round_ticks(low, high)
    assert 1 <= len(ticks) <= 7
    assert all(low <= tick <= high * 1.0001 for tick in ticks)


def test_log_ticks_are_few() -> None:
    assert log_ticks(1, 2**31)[:2] == [1.0, 32.0]
    assert len(log_ticks(1, 2**31)) <= 7


def test_a_scale_of_one_value_is_in_the_middle() -> None:
    assert horizontal(5, 5)(5) == pytest.approx((LEFT + WIDTH - 12) / 2)
