"""`packtool tokenize` on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from packtool.cli import run


def test_an_empty_corpus_is_not_sent_to_stats(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "empty.jsonl").write_text("", encoding="utf-8")
    assert run(["tokenize", "empty.jsonl", "-o", "t"]) == 0
    shown = capsys.readouterr()
    assert "warning[no-documents]" in shown.err
    assert "which holds no document" in shown.out
    assert "stats" not in shown.out
