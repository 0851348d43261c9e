"""`info` tells what a path is, whether it is whole, and what to do next."""

from __future__ import annotations

from pathlib import Path

import pytest

import packtool
from packtool.cli import run
from packtool.errors import DataError
from packtool.storage.output import prepare
from tests.stores import write_store


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_store(Path("store"), [5, 9, 70])
    packtool.pack("store", "packed", strategy="concat", sequence_length=16)
    return tmp_path


def said(capsys: pytest.CaptureFixture[str], path: str, status: int = 0) -> str:
    assert run(["info", path]) == status
    return capsys.readouterr().out


def test_a_token_store(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = said(capsys, "store")
    assert text.startswith("store: token store, whole\n  documents   3\n  tokens      84\n  EOS         <eos> (0)\n")
    assert "  packtool pack store -o packed --strategy concat --sequence-length 2048\n" in text


def test_a_packed_dataset(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = said(capsys, "packed")
    assert text.startswith("packed: packed dataset, whole\n  strategy         concat\n  sequence length  16\n")
    assert "  rows             6\n" in text
    assert "  order            atom shuffle, seed 42, epoch 0\n" in text
    assert "  packtool stats packed\n" in text


def test_every_bucket_is_looked_at(place: Path) -> None:
    packtool.pack("store", "buckets", strategy="buckets", buckets=[8, 16])
    assert packtool.info("buckets").facts["sequence length"] == [8, 16]
    (place / "buckets" / "bucket-00016" / "segments-00000.npy").unlink()
    found = packtool.info("buckets")
    assert (found.state, found.missing) == ("damaged", ["bucket-00016/segments-00000.npy"])


def test_damage(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = place / "store" / "tokens-00000.npy"
    file.write_bytes(file.read_bytes()[:-1])
    text = said(capsys, "store", status=1)
    assert text.startswith("store: token store, damaged\n")
    assert "missing or of the wrong size: tokens-00000.npy\nNext:\n  packtool verify store\n" in text


def test_an_order(place: Path) -> None:
    packtool.shuffle("packed", "order", epoch=1, order_only=True)
    assert packtool.info("order").kind == "order"
    assert packtool.info("order").state == "whole"


def test_unfinished_work(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    prepare("half", "pack", key="k")
    text = said(capsys, "half")
    assert text.startswith("half: output of an interrupted command, unfinished\n  begun by  packtool pack\n")
    assert "  packtool pack ... -o half --resume " in text


def test_a_directory_of_datasets(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = said(capsys, ".")
    assert text.startswith(".: directory of datasets, whole\n")
    assert "\n  packed                packed dataset, whole, 6 rows\n" in text
    prepare("half", "pack", key="k")
    assert packtool.info(".").state == "unfinished"


def test_what_packtool_did_not_write(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "corpus").mkdir()
    (place / "corpus" / "a b.jsonl.gz").write_bytes(b"xyz")
    assert said(capsys, "corpus") == (
        "corpus: not written by packtool\n  files  1\n  bytes  3\n  kinds  1 .jsonl.gz\n"
        "Next:\n  packtool tokenize corpus -o tokens\n"
    )
    assert "  packtool tokenize 'corpus/a b.jsonl.gz' -o tokens\n" in said(capsys, "corpus/a b.jsonl.gz")
    (place / "empty").mkdir()
    assert "empty: empty directory\nNext:\n  packtool tokenize corpus.jsonl -o empty\n" in said(capsys, "empty")
    (place / "c.toml").touch()
    assert "  packtool run c.toml --dry-run\n" in said(capsys, "c.toml")


def test_nothing(place: Path) -> None:
    with pytest.raises(DataError, match="nowhere: no such file or directory"):
        packtool.info("nowhere")
