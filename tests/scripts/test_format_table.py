"""The table of formats in docs/coming-from.md is what the formats say of themselves."""

from __future__ import annotations

from pathlib import Path

import format_table
import pytest

PAGE = Path(__file__).parents[2] / "docs" / "coming-from.md"


def test_the_page_has_the_table() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == format_table.written(page), "write it anew: python scripts/format_table.py docs/coming-from.md"
    assert page.count("| `megatron` |") == 1


def test_a_page_without_a_place_for_it_is_refused() -> None:
    with pytest.raises(ValueError, match="lacks <!-- formats -->"):
        format_table.written("# A page\n")
