"""What the documentation says of the papers follows from their own figures."""

from pathlib import Path

import pytest

from packtool.options.plans import PackOptions

TOP = Path(__file__).parents[1]
TABLE_3 = {32: (28120, 31816, 91.01, 87.22), 64: (14058, 17308, 110.45, 99.79), 128: (14056, 20496, 102.42, 82.55)}
"""Optimizing Packing and Shuffling Strategies: steps of concat and padding, final perplexity of both."""


def test_padding_ends_lower_in_perplexity_for_more_steps() -> None:
    lower = [f"{100 * (1 - padding / concat):.1f}" for _, _, concat, padding in TABLE_3.values()]
    more = [round(100 * (padding / concat - 1)) for concat, padding, _, _ in TABLE_3.values()]
    assert (min(lower, key=float), max(lower, key=float)) == ("4.2", "19.4")
    assert (min(more), max(more)) == (13, 46)
    for name in ("docs/choosing.md", "packtool/report/verdict.py"):
        text = " ".join((TOP / name).read_text(encoding="utf-8").replace("%", " %").split()).replace(" %", "%")
        assert "4.2 to 19.4%" in text
        assert "13 to 46%" in text.replace('13 to 46% " "', "13 to 46% ")


def test_the_padding_threshold_is_not_from_the_paper() -> None:
    text = " ".join((TOP / "docs" / "strategies.md").read_text(encoding="utf-8").split())
    assert "`--padding-threshold` is P; the paper names no value, 0.01 is packtool's." in text
    assert PackOptions().threshold * 100 == 1


@pytest.mark.parametrize("name", ["atoms-gpt2.toml", "atoms-gpt2-xl.toml", "atoms-gpt2-test.toml"])
def test_rows_under_fifty_characters_are_left_out(name: str) -> None:
    lines = (TOP / "configs" / name).read_text(encoding="utf-8").splitlines()
    assert "min-chars = 50" in lines
    assert "min-words = 50" not in lines
