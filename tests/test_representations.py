"""What the functions return fits a line of a Python prompt."""

from pathlib import Path

import pytest

import packtool


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "corpus.jsonl").write_text("".join(f'{{"text": "{"word " * (n % 40 + 1)}"}}\n' for n in range(1200)))
    return tmp_path


def test_short_representations(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    found = packtool.tokenize("corpus.jsonl", "tokens", workers=1)
    held = f"1,200 documents, {found.counts['tokens']:,} tokens"
    assert repr(found) == f"<TokenizeResult: tokens, {held}>"
    assert repr(packtool.tokenize("corpus.jsonl", "tokens", resume=True)) == f"<TokenizeResult: tokens, {held}, kept>"
    made = packtool.pack("tokens", "packed", strategy="bfd", sequence_length=64)
    rows = made.report.ledger.rows
    assert repr(made.report) == f"<PackedReport: bfd, {rows:,} rows of 64 tokens, padding 0.27%>"
    assert repr(made) == f"<DatasetResult: packed, {made.report!r}>"
    assert repr(packtool.stats("packed")) == f"<MeasuredReport: bfd, {rows:,} rows of 64 tokens, padding 0.27%>"
    assert repr(packtool.stats("tokens")) == f"<StoreReport: tokens, {held}>"
    compared = packtool.stats("tokens", compare=["concat", "bfd"], sequence_length=64)
    assert repr(compared) == f"<StoreReport: tokens, {held}, 2 plans compared>"
    assert repr(packtool.show("packed", row=3)).startswith(f"<Row: packed, row 3 of {rows:,}, 64 tokens in ")
    dry = packtool.pack("tokens", "other", strategy="bfd", sequence_length=64, dry_run=True)
    tokens = found.counts["tokens"]
    assert repr(dry) == f"<DatasetResult: other, <Preview: pack would read documents=1200, tokens={tokens}>>"
