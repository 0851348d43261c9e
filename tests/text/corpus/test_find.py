"""The files that arguments stand for, and what the user is told of them."""

from pathlib import Path

import pytest

import packtool
from packtool.errors import DataError, UsageError
from packtool.text.corpus.find import find_files
from packtool.warnings import PacktoolWarning
from tests.making import Make
from tests.text.corpus.reading import put
from tests.text.tokenizing.runs import TEXTS, corpus_of_every_kind, documents, fails, reference, run, stored


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


@pytest.mark.parametrize("pattern", ["a.jsonl", "./a.jsonl", "in/a.jsonl", "./in/a.jsonl", "in/*", "**/a.*"])
@pytest.mark.parametrize("top", ["in", "./in"])
def test_a_pattern_may_be_a_path_as_messages_have_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, top: str, pattern: str
) -> None:
    monkeypatch.chdir(put(tmp_path, "in/a.jsonl"))
    assert len(find_files(top, None, [pattern]).files) == 1
    assert "no file is left" in fails(DataError, top, tmp_path / "s", exclude=[pattern])


def test_a_name_is_a_pattern_of_itself(tmp_path: Path) -> None:
    put(tmp_path, "a[1].jsonl", "b.jsonl")
    assert [file.name for file in find_files(tmp_path, None, ["a[1].jsonl"]).files] == ["a[1].jsonl"]


@pytest.mark.parametrize(("option", "other"), [("include", "*.jsonl"), ("exclude", "a*")])
def test_a_pattern_that_matches_nothing_is_told(tmp_path: Path, option: str, other: str) -> None:
    put(tmp_path, "in/a.jsonl", "in/b.jsonl", "other/b.jsonl")
    inputs = [tmp_path / "in", tmp_path / "other"]
    with pytest.warns(PacktoolWarning, match=rf"{option}: 'c\*' matches no file\. A pattern without /"):
        run(inputs, tmp_path / "s", **{option: [other, "c*"]})


@pytest.mark.parametrize(("separator", "text"), [("\\n", "a b"), ("\\n--\\n", "a\n\n--\nb".replace("--", "=="))])
def test_a_separator_that_divides_nothing_is_told(tmp_path: Path, separator: str, text: str) -> None:
    (tmp_path / "a.txt").write_text(text)
    with pytest.warns(PacktoolWarning, match=r"separator: it stands between the documents of no file: each of 1 file"):
        assert len(stored(tmp_path / "a.txt", tmp_path / "s", separator=separator)) == 1


@pytest.mark.parametrize("separator", ["\\f", "a\\", "\\\\\\x"])
def test_an_unknown_escape_is_refused(tmp_path: Path, separator: str) -> None:
    (tmp_path / "a.txt").write_text("a")
    assert "separator: an unknown escape. Write \\n for" in fails(
        UsageError, tmp_path / "a.txt", tmp_path / "s", separator=separator
    )


def test_a_backslash_is_written_twice(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a\\nb\\nc")
    assert len(stored(tmp_path / "a.txt", tmp_path / "s", separator="\\\\n")) == 3


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
