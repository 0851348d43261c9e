"""The picture of rows in the README is what packtool makes today."""

from __future__ import annotations

from pathlib import Path

import rows_picture

PICTURE = Path(__file__).parents[2] / "docs" / "rows.svg"


def test_the_picture_is_up_to_date() -> None:
    assert PICTURE.read_text(encoding="utf-8") == rows_picture.picture(), (
        "draw it anew: python scripts/rows_picture.py docs/rows.svg"
    )


def test_every_row_is_drawn_whole() -> None:
    picture = rows_picture.picture()
    for strategy in rows_picture.STRATEGIES:
        assert f">{strategy}</tspan>" in picture
    assert picture.count("#d62728") > 3, "concat cuts documents"
    assert "#e8e8e8" in picture, "padding is shown"
