"""The account of a span: nothing that was read is lost between reader, filters and store."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import packtool
from packtool.errors import DataError
from packtool.text.corpus.filters import DocumentCounts
from packtool.text.tokenizing.counts import SpanCounts
from tests.text.tokenizing.runs import jsonl


@pytest.mark.parametrize(
    ("options", "lost", "message"),
    [
        ({"min_words": 3}, "documents", r"documents read = stored \+ empty \+ filtered, but 151 is not 75\."),
        ({"max_tokens": 3}, "tokens", r"text tokens = stored \+ filtered, but \d+ is not -?\d+\."),
    ],
)
def test_what_a_filter_takes_is_part_of_the_account(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], lost: str, message: str
) -> None:
    lines = [f"some more {n}" if n % 2 else "a" for n in range(150)]
    (tmp_path / "a.jsonl").write_bytes(jsonl([*lines, ""]))
    for bos in (None, "!"):
        counts = packtool.tokenize(
            tmp_path / "a.jsonl", tmp_path / f"{bos}", workers=1, bos_token=bos, **options
        ).counts
        assert counts["documents"] + counts["filtered"] + counts["empty"] == 151
        assert counts["filtered"] > 0
        assert (counts["filtered_tokens"] > 0) == ("max_tokens" in options)
    add = DocumentCounts.add

    def forget(self: DocumentCounts, *given: Any) -> None:
        before = getattr(self, lost)
        add(self, *given)
        setattr(self, lost, before)

    monkeypatch.setattr(DocumentCounts, "add", forget)
    with pytest.raises(DataError, match=message):
        packtool.tokenize(tmp_path / "a.jsonl", tmp_path / "o", workers=1, **options)
    assert not (tmp_path / "o" / "manifest.json").exists()


@given(st.lists(st.integers(0, 40)), st.sets(st.integers(0, 40)) | st.just({0, 1, 39}) | st.just({40}) | st.just({0}))
def test_ids_are_counted_as_one_counts_by_hand(ids: list[int], wanted: set[int]) -> None:
    counts = SpanCounts(0)
    for _ in range(2):
        counts.count_special(np.array(ids, np.uint32), tuple(sorted(wanted)), 41)
    assert counts.special == {str(number): 2 * ids.count(number) for number in wanted if number in ids}
