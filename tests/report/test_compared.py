"""What strategies would make of a corpus: as tried, with defaults, and as the row that all are held against."""

from __future__ import annotations

import numpy as np
import pytest

from packtool.comparing import candidates, compare
from packtool.metrics.lengths import LengthCounts
from packtool.report.compared import comparison_of
from packtool.report.schema import Comparison

LENGTHS = np.array([3, 9, 40, 17, 5, 64, 2, 30] * 20)


def comparison(names: list[str], sizes: list[int], parameters: int | None = None) -> Comparison:
    outcomes = list(compare(LENGTHS, candidates(names, sizes, {"buckets": [(16, 64)]} if "buckets" in names else None)))
    return comparison_of(outcomes, LengthCounts.of(LENGTHS), 4, "packtool pack store -o packed", parameters)


def test_entries_say_what_was_tried_and_how_to_pack_it() -> None:
    found = comparison(["concat", "seamless", "buckets"], [32, 64])
    assert [(entry.strategy, entry.sequence_length) for entry in found.entries] == [
        ("concat", 32),
        ("concat", 64),
        ("seamless", 32),
        ("seamless", 64),
        ("buckets", None),
    ]
    seamless = found.entries[3]
    assert seamless.options["max_repetition"] == 0.3
    assert seamless.options["extra_capacity"] == 50
    assert found.entries[4].options["buckets"] == [16, 64]
    assert found.entries[0].command == "packtool pack store -o packed --strategy concat --sequence-length 32"
    assert len(found.timings) == len(found.entries)


def test_attention_is_a_share_of_that_of_the_joined_stream() -> None:
    found = comparison(["concat"], [32, 64])
    base = found.attention_baseline
    tokens = int(LENGTHS.sum())
    for entry in found.entries:
        assert entry.sequence_length is not None
        rows = -(-tokens // entry.sequence_length)
        pairs = rows * entry.sequence_length * (entry.sequence_length + 1) // 2
        assert entry.attention == pytest.approx(pairs / (-(-tokens // base) * base * (base + 1) // 2))
        assert entry.training is None


def test_longer_documents_are_foreseen_for_each_row_length() -> None:
    found = comparison(["concat", "bfd"], [64, 32])
    assert [(each.sequence_length, each.longer_texts) for each in found.sliding] == [(32, 40), (64, 0)]
    assert comparison(["concat"], [32], parameters=10**9).entries[0].training is not None
