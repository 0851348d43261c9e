"""Each rule of the advice: when it speaks, and that its figures are those of the corpus."""

from __future__ import annotations

import numpy as np
import pytest

from packtool.comparing import candidates, compare
from packtool.metrics.lengths import LengthCounts
from packtool.report.advice import Advice, advise
from packtool.report.compared import comparison_of


def advice_for(lengths: list[int], sizes: list[int], names: list[str] | None = None) -> list[Advice]:
    array = np.array(lengths, np.int64)
    counts = LengthCounts.of(array)
    outcomes = list(compare(array, candidates(names or ["all"], sizes)))
    return advise(counts, comparison_of(outcomes, counts, None).entries)


def said(advice: list[Advice]) -> str:
    return "\n".join(f"{a.advice} {a.reason}" for a in advice)


def test_documents_longer_than_a_row() -> None:
    text = said(advice_for([500] * 40, [64]))
    assert "Keep the atom size at the sequence length (the default) for rows of 64 tokens." in text
    assert "Do not use padding" not in text


def test_rows_far_longer_than_documents() -> None:
    text = said(advice_for([50] * 400, [512]))
    assert "Do not use padding for rows of 512 tokens." in text
    assert "That is 10.2 times the mean document of 50.0 tokens, so that" in text
    assert "so that 90.43% of the output would be padding." in text
    assert "atom size" not in text


def test_every_piece_has_its_source_and_its_limits() -> None:
    for piece in advice_for([300] * 400 + [9000] * 40, [64, 512, 8192]):
        assert piece.source.startswith(("Optimizing", "Counted on this corpus"))
        assert "ested" in piece.untested


@pytest.mark.parametrize("names", [["concat"], ["padding"], ["bfd", "buckets"]])
def test_few_strategies_are_enough(names: list[str]) -> None:
    for piece in advice_for([300] * 40 + [9000] * 4, [64, 512], names):
        assert "None" not in piece.reason


def test_no_documents_no_advice() -> None:
    assert advice_for([], [64]) == []


def test_rows_of_equal_lengths_are_named() -> None:
    array = np.array([10] * 4000 + [20] * 4000, np.int64)
    outcomes = list(compare(array, candidates(["bfd"], [512], grid={"mix_rows": [True, False]})))
    text = said(advise(LengthCounts.of(array), comparison_of(outcomes, LengthCounts.of(array), None).entries))
    assert "Mix the rows of bfd unmixed: --mix-rows." in text
    assert "hold equal lengths but for one" in text
