"""`packtool shuffle` on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import packtool
from packtool.cli import run
from tests.stores import write_store


@pytest.fixture
def place(here: Path) -> Path:
    write_store(Path("store"), [5, 9, 70])
    packtool.pack("store", "rows", strategy="concat", sequence_length=8)
    packtool.pack("store", "buckets", strategy="buckets", buckets=(8, 16))
    return here


def test_the_result_as_json(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["shuffle", "rows", "-o", "out", "--epoch", "1", "--json", "--memory", "100"]) == 0
    captured = capsys.readouterr()
    result = json.loads(captured.out)
    assert result["path"] == "out"
    assert result["report"]["shuffle"] == {"method": "atom", "atom_size": None, "seed": 42, "epoch": 1}
    assert captured.err == ""


def test_a_summary(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number, options in enumerate(
        [
            ["rows", "--atom-size", "8"],
            ["rows", "--order-only"],
            ["store", "-m", "partial", "-B", "2", "-L", "8"],
            ["buckets", "-m", "bucket", "--batch-tokens", "32", "--remainder", "drop"],
        ]
    ):
        assert run(["shuffle", *options, "-o", str(number)]) == 0
        captured = capsys.readouterr()
        assert f"Wrote {number} in" in captured.out
        assert captured.err == ""


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["store", "-o", "out"], 2, "[not-packed]: store: a token store, where --method atom needs a packed dataset."),
        (
            ["rows", "-o", "out", "-m", "bucket"],
            2,
            "[missing-option]: --batch-tokens: --method bucket needs this",
        ),
        (["rows", "-o", "rows/out"], 2, "[output-overlaps-input]: rows/out: the output lies inside the input rows."),
        (["rows", "-o", "rows"], 2, "[output-overlaps-input]: rows: the output is the input. Choose an output"),
        (["nothing", "-o", "out"], 1, "[missing-input]: nothing: no such directory."),
        (["rows", "-o", "store"], 2, "[output-not-empty]: store:"),
    ],
)
def test_errors(
    place: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], status: int, message: str
) -> None:
    assert run(["shuffle", *arguments]) == status
    captured = capsys.readouterr()
    assert captured.out == ""
    assert message in captured.err.replace("\n", " ")
    assert not Path("out").exists()
