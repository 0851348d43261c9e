"""Damaged files of every format against a naive reader: a short form, and the long one (see fuzz.py)."""

import pytest

from packtool.options.names import IMPORTS
from tests.exchange.foreign import WRITERS
from tests.shell import fuzzed


@pytest.mark.parametrize(
    ("names", "cases", "seed"),
    [(tuple(WRITERS), 20, 0), *(pytest.param((name,), 400, 7, marks=pytest.mark.slow) for name in IMPORTS)],
)
def test_damaged_files(names: tuple[str, ...], cases: int, seed: int) -> None:
    counts = fuzzed("tests.exchange.fuzz", ",".join(names), cases, seed)
    assert counts["whole"] == len(names) * -(-cases // 10)
    assert counts["refused"] > counts["read"] // 4 > 0
    assert counts["peak_mib"] < 1000
