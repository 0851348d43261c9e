"""The files that arguments stand for, and what the user is told of them."""

from __future__ import annotations

from pathlib import Path

import pytest

import packtool
from packtool.errors import UsageError
from packtool.warnings import PacktoolWarning
from tests.making import Make
from tests.text.tokenizing.runs import TEXTS, corpus_of_every_kind, documents, fails, reference, run


def test_a_file_named_twice_is_read_twice_and_said_so(tmp_path: Path) -> None:
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    (corpus / "a.jsonl").write_text('{"text": "one"}\n')
    with pytest.warns(PacktoolWarning, match=r"a\.jsonl: named 2 times, and read as often"):
        result = packtool.tokenize([corpus, corpus / "a.jsonl"], tmp_path / "store")
    assert result.counts["documents"] == 2


def test_files_of_other_kinds_in_a_directory_are_named_once(tmp_path: Path) -> None:
    corpus = corpus_of_every_kind(tmp_path / "corpus", TEXTS)
    (corpus / "README.md").write_text("# not a document")
    (corpus / "dataset_info.json").write_text("{}")
    with pytest.warns(PacktoolWarning) as caught:
        result = run(corpus, tmp_path / "o")
    [warning] = [each for each in caught if "special tokens" not in str(each.message)]
    assert str(warning.message) == (
        f"{corpus}: not read, since their names have no known suffix, or begin with _ or a dot: README.md, "
        "dataset_info.json. Name the files to read "
        "them, or give include with a pattern, and format if needed."
    )
    assert documents(result.path) == reference(TEXTS * 7)
    one = run(corpus, tmp_path / "p", include=["*.md"], format="text")
    assert documents(one.path) == reference(["# not a document"])
    assert "'[z-a]' is not a pattern" in fails(UsageError, corpus, tmp_path / "q", exclude=["[z-a]"])


def test_a_dataset_is_no_text(make: Make, tmp_path: Path) -> None:
    made = make([5, 9], rows={"strategy": "bfd", "sequence_length": 16})
    said = {"store": "a token store already, not text. Pack it: packtool pack {} -o rows."}
    said["rows"] = "a packed dataset already, not text. Train on it, or see what is in it: packtool stats {}."
    for name, message in said.items():
        path = made / name
        assert fails(UsageError, path, tmp_path / "out") == f"{path}: {message.format(path)}"
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "manifest.json").write_text('{"format": "jsonl"}')
    (tmp_path / "corpus" / "a.jsonl").write_text('{"text": "one"}\n')
    files = packtool.tokenize(tmp_path / "corpus", tmp_path / "out", include=["*.jsonl"])
    assert files.counts["documents"] == 1
