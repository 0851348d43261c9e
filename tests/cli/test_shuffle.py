"""`packtool shuffle` on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.making import Make
from tests.shell import Shell


@pytest.fixture
def place(here: Path, make: Make) -> Path:
    rows, buckets = {"strategy": "concat", "sequence_length": 8}, {"strategy": "buckets", "buckets": (8, 16)}
    return make([5, 9, 70], rows=rows, buckets=buckets, at=here)


def test_the_result_as_json(place: Path, shell: Shell) -> None:
    result = json.loads(shell("shuffle", "rows", "-o", "out", "--epoch", "1", "--json", "--memory", "100"))
    assert result["path"] == "out"
    shuffle = {name: value for name, value in result["report"]["shuffle"].items() if value is not None}
    assert shuffle == {"method": "atom", "seed": 42, "epoch": 1}
    assert shell.err == ""


SUMMED_UP = (
    "rows --atom-size 8",
    "store -m partial -B 2 -L 8",
    "buckets -m bucket --batch-tokens 32 --remainder drop",
)


def test_a_summary(place: Path, shell: Shell) -> None:
    for number, typed in enumerate(SUMMED_UP):
        assert f"Wrote {number} in" in shell("shuffle", *typed.split(), "-o", number)
        assert shell.err == ""


@pytest.mark.parametrize(
    ("typed", "status", "message"),
    [
        ("store -o out", 2, "[not-packed]: store: a token store, where --method atom needs a packed dataset."),
        ("rows -o rows/out", 2, "[output-overlaps-input]: rows/out: the output lies inside the input rows."),
        ("rows -o rows", 2, "[output-overlaps-input]: rows: the output is the input. Choose an output"),
        ("nothing -o out", 1, "[missing-input]: nothing: no such directory."),
        ("rows -o store", 2, "[output-not-empty]: store:"),
    ],
)
def test_errors(place: Path, shell: Shell, typed: str, status: int, message: str) -> None:
    assert message in shell.refused("shuffle", *typed.split(), status=status)
    assert shell.out == ""
    assert not Path("out").exists()
