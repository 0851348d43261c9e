"""`stats` on text files: the lengths that `tokenize` would find, and nothing left behind."""

import errno
import io
import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

import packtool
from packtool.errors import DataError
from packtool.formats import manifest as manifests
from packtool.formats.schema import listed_files
from packtool.outputs.output import Output
from packtool.warnings import PacktoolWarning
from tests.shell import Shell

TEXTS = ["one two  three", "", "Ümläute and more words " * 40, "\n", "end"]


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.jsonl"
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS))
    return path


@pytest.mark.parametrize("workers", [1, 2])
def test_equals_tokenizing_then_measuring(corpus: Path, tmp_path: Path, workers: int) -> None:
    packtool.tokenize(corpus, tmp_path / "store")
    options: dict[str, Any] = {"compare": ["concat", "bfd"], "sequence_length": 32}
    from_text = packtool.stats(corpus, workers=workers, **options)
    from_store = packtool.stats(tmp_path / "store", **options)
    for name in ("kind", "counts", "lengths", "tokenizer", "dtype"):
        assert getattr(from_text, name) == getattr(from_store, name)
    assert from_text.path == str(corpus)
    assert from_text.temporary_bytes == sum(file.bytes for file in listed_files(manifests.read(tmp_path / "store")))
    assert from_store.temporary_bytes is None
    for one, other in zip(from_text.comparison.entries, from_store.comparison.entries, strict=True):
        assert one == msgspec.structs.replace(other, command=one.command)
        assert one.command.startswith(f"packtool tokenize {corpus} -o tokens && packtool pack tokens -o packed ")


def test_bad_records_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "corpus.jsonl"
    path.write_text('{"text": "good"}\nnot json\n{"title": "no text"}\n')
    said = f"^{re.escape(str(path))}: 2 records could not be used"  # it names the input, not the temporary store
    with pytest.warns(PacktoolWarning, match=said):
        report = packtool.stats(path, compare="concat", sequence_length=8)
    assert report.counts["documents"] == 1
    assert report.counts["rejected_invalid_json"] == report.counts["rejected_missing_text"] == 1
    assert f"packtool tokenize {path} -o tokens --on-error skip && " in report.comparison.entries[0].command


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b'{"text": "a b c"}\n')))
    assert packtool.stats("-").counts["documents"] == 1


def test_a_full_disk_names_the_way_out(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Output, "finish", full)
    with pytest.raises(DataError, match="set TMPDIR to a directory on a larger disk") as error:
        packtool.stats(corpus)
    assert error.value.code == "disk-full"


def test_terminal(corpus: Path, shell: Shell) -> None:
    text = shell("stats", corpus, "--compare", "concat,bfd", "-L", "32")
    said = r"4 documents, \d+ tokens of packtool's small tokenizer, 1 empty; took .* of temporary"
    assert re.search(said, " ".join(text.split()))
    assert text.startswith(
        "Verdict for rows of 32 tokens: concat\n  Of the documents that would fit in a row concat cuts"
    )
    assert "Rows of 32 tokens" in text
    assert max(len(line.rstrip()) for line in text.splitlines() if "packtool" not in line) <= 80
    assert "Document length in tokens" not in text
    page = corpus.with_name("page.html")
    text = shell("stats", corpus, "--compare", "concat,bfd", "-L", "32", "--full", "--html", page)
    assert "tokens in a document, EOS included" in page.read_text("utf-8")
    assert "Document length in tokens" in text
    assert "pairs of tokens in rows" in text
