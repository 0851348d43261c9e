"""Damaged input is found while it is read, and nothing that was made of it is kept."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import packtool
from packtool.cli import run
from packtool.storage.packed import PackedDataset
from tests.commands.test_shuffle import contents
from tests.stores import write_store

LENGTHS = np.random.default_rng(3).integers(1, 90, 120).tolist()
PACK = ["pack", "store", "--strategy", "concat", "-L", "16", "--shard-tokens", "320"]
SHUFFLE = ["shuffle", "packed"]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_store(Path("store"), LENGTHS, per_shard=30)
    packtool.pack("store", "packed", strategy="concat", sequence_length=16, shard_tokens=320, shuffle=False)
    packtool.pack("store", "expected", strategy="concat", sequence_length=16, shard_tokens=320)
    return tmp_path


def flip(file: Path, place: int = -3) -> None:
    """Change one bit."""
    data = bytearray(file.read_bytes())
    data[place] ^= 4
    file.write_bytes(data)


@pytest.mark.parametrize("memory", ["1GiB", "8kB"])
@pytest.mark.parametrize(
    ("command", "damaged"),
    [
        (PACK, "store/tokens-00003.npy"),
        (PACK, "store/tokens-00000.npy"),
        (SHUFFLE, "packed/tokens-00002.npy"),
        (SHUFFLE, "packed/segments-00001.npy"),
        (SHUFFLE, "packed/lengths.npy"),
    ],
)
def test_one_bit(
    place: Path, capsys: pytest.CaptureFixture[str], command: list[str], damaged: str, memory: str
) -> None:
    arguments = [*command, "-o", "out", "-q", "--memory", memory]
    flip(Path(damaged))
    assert run(arguments) == 1
    message = capsys.readouterr().err
    assert f"]: {damaged}: " in message or (damaged == "packed/segments-00001.npy" and "]: packed: row" in message)
    assert not Path("out/manifest.json").exists()
    assert not list(Path("out").rglob("unfinished/**/*-0*.json")), "what was made of damaged input is kept"
    flip(Path(damaged))
    assert run([*arguments, "--resume"]) == 0
    assert contents(Path("out")) == contents(Path("expected"))


@pytest.mark.parametrize(
    ("command", "damaged"), [(PACK, "store/tokens-00001.npy"), (SHUFFLE, "packed/tokens-00002.npy")]
)
def test_a_flipped_token_is_named_and_may_be_trusted(
    place: Path, capsys: pytest.CaptureFixture[str], command: list[str], damaged: str
) -> None:
    flip(Path(damaged))
    assert run([*command, "-o", "out", "-q"]) == 1
    assert capsys.readouterr().err == (
        f"packtool: error[wrong-checksum]: {damaged}: its checksum differs from the manifest's: the file has changed "
        "since it was written. Make it again, or copy it again.\n"
    )
    assert run([*command, "-o", "out", "-q", "--no-check-input", "--overwrite"]) == 0


def test_every_file_is_checked(place: Path) -> None:
    held = {file.path.name for file in PackedDataset("packed").files()}
    there = {file.name for file in Path("packed").glob("*.npy")}
    assert held == there
