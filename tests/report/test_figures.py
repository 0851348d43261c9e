"""Figures as they are written: never rounded to what they are not, never wider than their column."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from packtool.report.figures import percent, short
from packtool.report.tables import FIGURES


@given(st.floats(1e-12, 1 - 1e-12))
def test_a_share_is_not_rounded_to_none_or_all(share: float) -> None:
    assert percent(share) not in ("0", "0.00%", "100%", "100.00%")


@given(st.integers(0, 10**17))
def test_a_size_takes_at_most_five_characters_and_is_near(value: int) -> None:
    text = short(value)
    assert len(text) <= 5
    scale = {"k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}.get(text[-1], 1)
    assert float(text.rstrip("kMGTP").replace(",", "")) * scale == pytest.approx(value, rel=0.05)


def test_every_figure_has_a_name_and_a_meaning_of_its_own() -> None:
    assert all(figure.meaning and figure.title for figure in FIGURES.values())
    assert len({figure.meaning for figure in FIGURES.values()}) == len(FIGURES)
