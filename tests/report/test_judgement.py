"""Whether a packed dataset is good: each sentence follows from its figures and names what to do."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import packtool
from packtool.report.judgement import judge
from packtool.report.packed import report_of_rows
from tests.reports import NOTHING
from tests.stores import write_store

LENGTHS = [*([40] * 60), *([100] * 30), *([300] * 10)]


def judged(place: Path, lengths: list[int] = LENGTHS, **options: object) -> list[tuple[bool, str]]:
    store = write_store(place / "store", lengths)
    packtool.pack(store, place / "rows", sequence_length=128, **options)  # type: ignore[arg-type]
    return [(each.good, each.words) for each in judge(packtool.stats(place / "rows"))]  # type: ignore[arg-type]


def test_avoidable_truncation_is_told_from_what_no_strategy_keeps_whole(tmp_path: Path) -> None:
    _, (good, words) = judged(tmp_path, strategy="concat")
    assert not good
    assert ": 10.00% are longer than a row, but " in words
    assert words.endswith("% would fit, and bfd would keep these whole.")


def test_documents_longer_than_a_row_are_no_fault(tmp_path: Path) -> None:
    _, (good, words) = judged(tmp_path, strategy="bfd")
    assert (good, words) == (
        True,
        "10.00% of the documents are cut, all of them longer than a row: no strategy keeps these whole.",
    )


def test_waste_is_held_against_the_limit_of_the_verdict(tmp_path: Path) -> None:
    (good, words), _ = judged(tmp_path, strategy="padding")
    assert not good
    assert words.endswith("% of the output is padding: more than 2.00%; other strategies may waste less.")
    (tmp_path / "more").mkdir()
    (good, words), _ = judged(tmp_path / "more", strategy="concat")
    assert good
    assert words.endswith(": little is wasted.")


@pytest.mark.parametrize("mixed", [True, False])
def test_rows_that_could_be_mixed_are_named(tmp_path: Path, mixed: bool) -> None:
    found = judged(tmp_path, [10] * 400 + [60] * 400, strategy="bfd", mix_rows=mixed)
    assert any("--mix-rows mixes them" in words for _, words in found) is not mixed


def test_of_several_row_lengths_the_least_mixed_is_named(tmp_path: Path) -> None:
    lengths = np.clip(np.random.default_rng(1).lognormal(3.3, 1.5, 3000), 2, 900).astype(int).tolist()
    store = write_store(tmp_path / "store", lengths)
    packtool.pack(store, tmp_path / "rows", strategy="buckets", buckets=[128, 1024], mix_rows=False)
    words = " ".join(each.words for each in judge(packtool.stats(tmp_path / "rows")))  # type: ignore[arg-type]
    assert "Documents that share a row of 128 tokens are of like length, " in words


def test_of_nothing_nothing_is_said() -> None:
    assert judge(report_of_rows([], NOTHING, strategy="concat", options={}, shuffle=None)) == []
