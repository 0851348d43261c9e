"""Damaged input is found while it is read, and nothing that was made of it is kept."""

from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
import pytest

import packtool
from packtool.engines import Engine
from packtool.formats.packed import PackedDataset
from packtool.writing.input_check import InputCheck
from tests.interrupting import flip
from tests.making import Make, drawn_lengths, write_records
from tests.shell import Shell
from tests.stores import contents

LENGTHS = drawn_lengths(120, 89, seed=3, shortest=1)
ROWS: dict[str, Any] = {"strategy": "concat", "sequence_length": 16, "shard_tokens": 320}
PACK = ["pack", "store", "--strategy", "concat", "-L", "16", "--shard-tokens", "320"]
SHUFFLE = ["shuffle", "packed"]
EXPORT = ["export", "--format", "nanogpt"]
LITTLE = ["--memory", "8kB"]


@pytest.fixture
def place(make: Make, here: Path) -> Path:
    """A store, and its rows in corpus order, to damage."""
    make(LENGTHS, {"per_shard": 30}, at=here, packed={**ROWS, "shuffle": False})
    return here


@pytest.mark.parametrize(
    ("command", "damaged"),
    [
        (PACK, "store/tokens-00003.npy"),
        ([*PACK, *LITTLE], "store/tokens-00000.npy"),
        (SHUFFLE, "packed/tokens-00002.npy"),
        (SHUFFLE, "packed/segments-00001.npy"),
        (SHUFFLE, "packed/lengths.npy"),
        ([*SHUFFLE, *LITTLE], "packed/tokens-00002.npy"),
        ([*SHUFFLE, *LITTLE], "packed/segments-00001.npy"),
        ([*SHUFFLE, *LITTLE], "packed/lengths.npy"),
        ([*EXPORT, "store"], "store/tokens-00001.npy"),
        ([*EXPORT, "packed"], "packed/tokens-00002.npy"),
        ([*EXPORT, "packed"], "packed/lengths.npy"),
    ],
)
def test_a_flipped_bit_is_named_and_may_be_trusted(place: Path, shell: Shell, command: list[str], damaged: str) -> None:
    shell(*command, "-o", "sound", "-q")
    command = [*command, "-o", "out", "-q"]
    flip(Path(damaged))
    message = shell.refused(*command)
    assert "segments" in damaged or message == (  # a row may be refused first
        f"packtool: error[wrong-checksum]: {damaged}: its checksum differs from the manifest's: the file has changed "
        "since it was written. Make it again, or copy it again.\n"
    )
    assert not Path("out/manifest.json").exists()
    assert not list(Path("out").rglob("unfinished/pieces/**/*.json")), "what was made of damaged input is kept"
    flip(Path(damaged))
    shell(*command, "--resume")
    assert contents(Path("out")) == contents(Path("sound"))
    flip(Path(damaged))
    if "tokens" in damaged or "export" in command:
        shell(*command, "--no-check-input", "--overwrite")


@pytest.mark.parametrize("options", [{}, {"mix": ["store=2x"]}])
def test_every_file_is_checked(place: Path, options: dict[str, Any]) -> None:
    packtool.pack("store", "rows", **ROWS, **options)
    held = {file.entry.name for file in PackedDataset("rows").files()}
    assert held == {file.name for file in Path("rows").glob("*.npy")}


def test_what_decides_sides_is_checked(place: Path, shell: Shell) -> None:
    packtool.tokenize(write_records(Path("a.jsonl"), [{"text": f"text {n}"} for n in range(200)]), "tokenized")
    damaged = Path("tokenized/documents-00000-000.npy")
    command = ["pack", "tokenized", "-o", "out", "-q", "--strategy", "concat", "-L", "16"]
    flip(damaged)
    said = shell.refused(*command, "--holdout", "10%")
    assert said.startswith(f"packtool: error[wrong-checksum]: {damaged}: its checksum differs")
    shell(*command, "--overwrite")  # not read, so not asked


def exchange_two(file: Path) -> None:
    """Exchange two documents that were chosen."""
    array = np.load(file)
    array[[3, 4]] = array[[4, 3]]
    file.write_bytes(file.read_bytes()[: -array.nbytes] + array.tobytes())


def rename_figures(file: Path) -> None:
    file.write_bytes(file.read_bytes().replace(b'"mean"', b'"maen"', 1).replace(b"rows", b"rwos", 1))


@pytest.mark.parametrize(
    ("options", "file", "damage"),
    [
        ({"mix": ["store=2x"]}, "chosen.npy", exchange_two),
        ({"segments": False}, "report.json", rename_figures),  # which is carried over
    ],
)
def test_what_is_not_of_rows_is_checked(
    place: Path, shell: Shell, options: dict[str, Any], file: str, damage: Any
) -> None:
    packtool.pack("store", "rows", strategy="bfd", sequence_length=128, **options)
    damage(Path("rows", file))
    said = shell.refused("shuffle", "rows", "-o", "out", "-q", "--epoch", 1)
    assert f"error[wrong-checksum]: rows/{file}: its checksum differs" in said


def test_an_error_keeps_what_is_known_to_be_sound_by_then() -> None:
    checked, kept = Event(), []

    class Slow(Engine):
        @property
        def beside(self) -> Engine:
            return self

        def run(self, function: Any, tasks: Any, *_: Any) -> Any:
            checked.wait()
            yield from ()

    with pytest.raises(OSError, match="disk full"), InputCheck([], engine=Slow(1)) as check:
        check.keep(lambda: kept.append(1))
        assert kept == [], "the check is not done"
        checked.set()
        raise OSError("disk full")
    assert kept == [1]
