"""Damaged input is found while it is read, and nothing that was made of it is kept."""

from __future__ import annotations

import shutil
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
import pytest

import packtool
from packtool.cli import run
from packtool.engines import Engine
from packtool.formats.packed import PackedDataset
from packtool.writing.input_check import InputCheck
from tests.stores import contents, write_store

LENGTHS = np.random.default_rng(3).integers(1, 90, 120).tolist()
PACK = ["pack", "store", "--strategy", "concat", "-L", "16", "--shard-tokens", "320"]
SHUFFLE = ["shuffle", "packed"]


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("sound")
    options: dict[str, Any] = {"strategy": "concat", "sequence_length": 16, "shard_tokens": 320}
    store = write_store(place / "store", LENGTHS, per_shard=30)
    packtool.pack(store, place / "packed", **options, shuffle=False)
    packtool.pack(store, place / "expected", **options)
    return place


@pytest.fixture
def place(sound: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Copies of these, to damage."""
    monkeypatch.chdir(shutil.copytree(sound, tmp_path, dirs_exist_ok=True))
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
    assert not list(Path("out").rglob("unfinished/pieces/**/*.json")), "what was made of damaged input is kept"
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
    held = {file.entry.name for file in PackedDataset("packed").files()}
    there = {file.name for file in Path("packed").glob("*.npy")}
    assert held == there


@pytest.mark.parametrize(
    ("source", "damaged"),
    [("store", "store/tokens-00001.npy"), ("packed", "packed/tokens-00002.npy"), ("packed", "packed/lengths.npy")],
)
def test_an_export_checks_what_it_reads(
    place: Path, capsys: pytest.CaptureFixture[str], source: str, damaged: str
) -> None:
    packtool.export(source, "expected-export", format="nanogpt")
    command = ["export", source, "-o", "out", "-q", "--format", "nanogpt"]
    flip(Path(damaged))
    assert run(command) == 1
    assert capsys.readouterr().err.startswith(f"packtool: error[wrong-checksum]: {damaged}: its checksum differs")
    assert not Path("out/manifest.json").exists()
    assert not list(Path("out/unfinished").glob("pieces/part/*"))
    assert run([*command, "--no-check-input", "--overwrite"]) == 0
    flip(Path(damaged))
    assert run([*command, "--overwrite"]) == 0
    assert contents(Path("out")) == contents(Path("expected-export"))


def test_what_decides_sides_is_checked(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.jsonl").write_text("".join(f'{{"text": "text {number}"}}\n' for number in range(200)))
    packtool.tokenize("a.jsonl", "tokenized")
    damaged = Path("tokenized/documents-00000-000.npy")
    command = ["pack", "tokenized", "-o", "out", "-q", "--strategy", "concat", "-L", "16"]
    flip(damaged)
    assert run([*command, "--holdout", "10%"]) == 1
    assert capsys.readouterr().err.startswith(f"packtool: error[wrong-checksum]: {damaged}: its checksum differs")
    assert run([*command, "--overwrite"]) == 0, "not read, so not asked"


def test_what_was_chosen_is_checked(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    packtool.pack("store", "twice", strategy="concat", sequence_length=16, mix=["store=2x"])
    held = {file.entry.name for file in PackedDataset("twice").files()}
    assert held == {file.name for file in Path("twice").glob("*.npy")}
    array = np.load("twice/chosen.npy")
    array[3], array[4] = array[4], array[3]
    with Path("twice/chosen.npy").open("r+b") as file:
        file.seek(-array.nbytes, 2)
        file.write(array.tobytes())
    assert run(["shuffle", "twice", "-o", "out", "-q", "--epoch", "1"]) == 1
    assert "error[wrong-checksum]: twice/chosen.npy: its checksum differs" in capsys.readouterr().err


def test_a_report_that_is_carried_over_is_checked(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    packtool.pack("store", "bare", strategy="bfd", sequence_length=128, segments=False)
    report = Path("bare/report.json")
    report.write_bytes(report.read_bytes().replace(b'"mean"', b'"maen"', 1).replace(b"rows", b"rwos", 1))
    assert run(["shuffle", "bare", "-o", "out", "-q", "--epoch", "1"]) == 1
    assert "error[wrong-checksum]: bare/report.json: its checksum differs" in capsys.readouterr().err


def test_an_error_keeps_what_is_known_to_be_sound_by_then():
    checked, kept = Event(), []

    class Slow(Engine):
        @property
        def beside(self) -> Engine:
            return self

        def run(self, function: Any, tasks: Any, **_: Any) -> Any:
            checked.wait()
            yield from ()

    with pytest.raises(OSError, match="disk full"), InputCheck([], engine=Slow(1)) as check:
        check.keep(lambda: kept.append(1))
        assert kept == [], "the check is not done"
        checked.set()
        raise OSError("disk full")
    assert kept == [1]
