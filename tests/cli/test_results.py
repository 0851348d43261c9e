"""What commands print when they are done."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import packtool as package
from packtool.cli import run
from packtool.cli.results import key_figures
from tests.cli.running import packtool


def test_batches_and_orders_are_told(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["pack", "store", "-o", "b", "--strategy", "buckets", "--buckets", "16,32", "-q"]) == 0
    assert run(["shuffle", "b", "-o", "s", "-m", "bucket", "--batch-tokens", "32"]) == 0
    shown = capsys.readouterr().out
    batches = json.loads((place / "s" / "run.json").read_text(encoding="utf-8"))["batches"]
    assert f"{batches} batches, each of rows of one length\n" in shown
    assert run(["info", "s"]) == 0
    assert re.search(rf"batches +{batches}\n", capsys.readouterr().out)
    assert run(["shuffle", "b", "-o", "o", "--order-only", "--epoch", "3", "-q"]) == 0
    assert run(["info", "o"]) == 0
    shown = capsys.readouterr().out
    assert re.search(r"of +b\n", shown)
    assert re.search(r"order +atom shuffle, seed 42, epoch 3\n", shown)
    assert "packtool stats b --order o" in shown


def test_json_is_one_object_and_nothing_else(place: Path) -> None:
    result = packtool("pack", "store", "-o", "p", "--strategy", "concat", "-L", "16", "--json")
    assert result.stderr == ""
    assert json.loads(result.stdout)["schema_version"] == 1
    assert result.stdout.count("\n") == 1


def test_no_colour_unless_on_a_terminal(place: Path) -> None:
    result = packtool("pack", "store", "-o", "p", "--strategy", "concat", "-L", "16")
    assert result.returncode == 0
    assert "\x1b" not in result.stdout + result.stderr
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_key_figures_are_written_as_in_the_tables(place: Path) -> None:
    report = package.pack("store", "rows", strategy="concat", sequence_length=4096).report
    assert report is not None
    assert report.metrics is not None
    per_row = report.metrics.documents_per_row.mean
    assert key_figures(report.metrics).startswith("padding ")
    assert f" {per_row:.2f} documents per row, " in key_figures(report.metrics)
    assert " %" not in key_figures(report.metrics)
