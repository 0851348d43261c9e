"""The options of `pack`, checked before anything is read."""

from __future__ import annotations

from pathlib import Path

import pytest

import packtool
from packtool.cli import run
from packtool.commands.verify import verify
from packtool.errors import UsageError
from packtool.formats.packed import PackedDataset
from tests.stores import EOS, write_store

LENGTHS = [5, 17, 2, 40, 9, 33, 8, 3, 12, 64, 7, 21, 2, 30, 11, 16]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return write_store(tmp_path / "store", LENGTHS)


def test_padding_token_by_id_and_by_text(tmp_path: Path, store: Path) -> None:
    packtool.pack(store, tmp_path / "id", strategy="padding", sequence_length=16, pad_token="77")
    packtool.pack(store, tmp_path / "text", strategy="padding", sequence_length=16, pad_token="<eos>")
    assert PackedDataset(tmp_path / "id").manifest.pad_id == 77
    assert PackedDataset(tmp_path / "text").manifest.pad_id == EOS
    assert verify(tmp_path / "id").problems == []
    with pytest.raises(UsageError, match=r"'<pad>' is not an added token of the tokenizer \(it has: <eos>\)"):
        packtool.pack(store, tmp_path / "x", strategy="padding", sequence_length=16, pad_token="<pad>")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["missing", "--strategy", "concat", "-L", "16"], 1, "missing: no such directory. Check the path."),
        ([".", "--strategy", "concat", "-L", "16"], 1, "no manifest.json, so this is not a finished token store"),
        (
            ["store", "--strategy", "tetris", "-L", "16"],
            2,
            "--strategy: there is no strategy 'tetris'. Choose one of concat",
        ),
        (["store", "--strategy", "concat"], 2, "--sequence-length: --strategy concat needs this option"),
        (
            ["store", "--strategy", "concat", "-L", "16", "-A", "10"],
            2,
            "--atom-size: 10 does not fit the sequence length 16",
        ),
        (["store", "--strategy", "concat", "-L", "16", "--seed", "18446744073709551616"], 2, "--seed"),
        (["store", "--strategy", "concat", "-L", "16", "--shard-tokens", "0"], 2, "--shard-tokens: 0 is out of range"),
        (["store", "--strategy", "concat", "-L", "x"], 2, "--sequence-length: 'x' is not a whole number"),
    ],
)
def test_refusals(
    tmp_path: Path,
    store: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    code: int,
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    assert run(["pack", *arguments, "-o", "out"]) == code
    error = capsys.readouterr().err
    assert message in error
    assert "Traceback" not in error
    assert not Path("out").exists()
