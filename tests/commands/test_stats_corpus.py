"""`stats` on text files: the lengths that `tokenize` would find, and nothing left behind."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

import packtool
from packtool.errors import DataError, UsageError
from packtool.text.encoding.encoders import EncoderMismatchError
from packtool.text.encoding.verify import Verified
from packtool.warnings import PacktoolWarning
from tests.shell import Shell

TEXTS = ["one two  three", "", "Ümläute and more words " * 40, "\n", "end"]


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.jsonl"
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS))
    return path


def test_words_and_characters(corpus: Path) -> None:
    report = packtool.stats(corpus)
    assert report.kind == "corpus"
    assert report.tokenizer is None
    assert report.lengths == report.words
    assert report.words.total == sum(len(text.split()) for text in TEXTS)
    assert report.words.documents == len(TEXTS)
    assert report.characters.total == sum(map(len, TEXTS))
    size = corpus.stat().st_size
    assert report.counts == {"files": 1, "bytes": size, "documents": 4, "empty": 1, "rejected": 0}


@pytest.mark.parametrize("workers", [1, 2])
def test_equals_tokenizing_then_measuring(corpus: Path, tmp_path: Path, workers: int) -> None:
    packtool.tokenize(corpus, tmp_path / "store")
    options: dict[str, Any] = {"compare": ["concat", "bfd"], "sequence_length": 32}
    from_text = packtool.stats(corpus, workers=workers, **options)
    from_store = packtool.stats(tmp_path / "store", **options)
    assert from_text.lengths == from_store.lengths
    assert from_text.tokenizer == from_store.tokenizer
    for one, other in zip(from_text.comparison.entries, from_store.comparison.entries, strict=True):
        assert one == msgspec.structs.replace(other, command=one.command)
        assert one.command.startswith(f"packtool tokenize {corpus} -o tokens && packtool pack tokens -o packed ")


def test_many_texts_and_one_that_is_cut(tmp_path: Path) -> None:
    texts = ["word " * 600_000, *(["short text"] * 50), "word " * 600_000]
    (tmp_path / "corpus.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    packtool.tokenize(tmp_path / "corpus.jsonl", tmp_path / "store")
    report = packtool.stats(tmp_path / "corpus.jsonl", compare="concat", sequence_length=64, workers=1)
    assert report.lengths == packtool.stats(tmp_path / "store").lengths


def test_bad_records_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "corpus.jsonl"
    path.write_text('{"text": "good"}\nnot json\n{"title": "no text"}\n')
    with pytest.warns(PacktoolWarning, match="2 records can't be used and are left out"):
        report = packtool.stats(path)
    assert report.counts["documents"] == 1
    assert report.counts["rejected"] == 2
    assert report.counts["rejected_invalid_json"] == report.counts["rejected_missing_text"] == 1


def test_falls_back_when_the_fast_encoder_differs(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = packtool.stats(corpus, compare="concat", sequence_length=32).lengths
    whole = Verified.encode

    def differ(self: Verified, *calls: Any) -> Any:
        if self.recipe.encoder == "gigatoken":
            raise EncoderMismatchError("encoder-mismatch", "different ids", remedy="use the other")
        return whole(self, *calls)

    monkeypatch.setattr(Verified, "encode", differ)
    with pytest.warns(PacktoolWarning, match="different ids"):
        report = packtool.stats(corpus, compare="concat", sequence_length=32, workers=1)
    assert report.lengths == expected


def test_standard_input(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b'{"text": "a b c"}\n')))
    report = packtool.stats("-")
    assert report.words.total == 3


def test_terminal(corpus: Path, shell: Shell) -> None:
    text = shell("stats", corpus, "--compare", "concat,bfd", "-L", "32")
    assert "· 1 file, 4 documents" in " ".join(text.split())
    assert text.startswith(
        "Verdict for rows of 32 tokens: concat\n  Of the documents that would fit in a row concat cuts"
    )
    assert "Rows of 32 tokens" in text
    assert max(len(line.rstrip()) for line in text.splitlines() if "packtool" not in line) <= 80
    assert "Document length in tokens" not in text
    text = shell("stats", corpus, "--compare", "concat,bfd", "-L", "32", "--full")
    assert "Document length in tokens" in text
    assert "pairs of tokens in rows" in text


def test_page(corpus: Path, tmp_path: Path) -> None:
    packtool.stats(corpus, html=tmp_path / "page.html")
    assert "words in a document" in (tmp_path / "page.html").read_text("utf-8")


def test_nothing_there(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no such file or directory\. Check the path\."):
        packtool.stats(tmp_path / "nothing")


def test_options_for_text_are_refused_elsewhere(corpus: Path, tmp_path: Path) -> None:
    packtool.tokenize(corpus, tmp_path / "store")
    said = r"^--text-field: has no effect on token stores\. Leave it out: this directory holds tokens already\.$"
    with pytest.raises(UsageError, match=said) as caught:
        packtool.stats(tmp_path / "store", text_field="body")
    assert caught.value.code == "option-not-taken"


def test_an_unfinished_store_is_no_corpus(tmp_path: Path) -> None:
    (tmp_path / "store" / "unfinished").mkdir(parents=True)
    with pytest.raises(DataError, match=r"was interrupted\. Finish it first"):
        packtool.stats(tmp_path / "store")
