"""What commands print when they are done."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import packtool as package
from packtool.cli import run
from packtool.cli.results import key_figures
from packtool.storage.packed import PackedDataset
from tests.cli.running import packtool
from tests.stores import write_store


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


def test_summaries_name_the_tokenizer_and_what_ends_documents(place: Path) -> None:
    packed = packtool("pack", "store", "-o", "rows", "--strategy", "bfd", "-L", "32").stdout
    shuffled = packtool("shuffle", "rows", "-o", "again", "--epoch", "1").stdout
    tokenizer = PackedDataset(place / "rows").manifest.tokenizer
    line = f"tokenizer: sha256 {tokenizer.sha256[:12]}; EOS {tokenizer.eos_token} ({tokenizer.eos_id})\n"
    assert line in packed
    assert line in shuffled


def test_pages_that_were_written_are_named(place: Path) -> None:
    packtool("pack", "store", "-o", "rows", "--strategy", "bfd", "-L", "32")
    compared = packtool("stats", "store", "--compare", "concat,bfd", "-L", "32", "--html", "a.html").stdout
    assert "\nWrote a.html.\n" in compared
    assert "--full" not in compared
    assert packtool("stats", "rows", "--html", "b.html").stdout.endswith("\nWrote b.html.\n")
    assert "charts: --html FILE;" in packtool("stats", "store", "--compare", "concat,bfd", "-L", "32").stdout
    Path("c.toml").write_text(
        '[tokenize]\n[pack]\nstrategy = "bfd"\nsequence-length = 32\n[[stats]]\nhtml = "r.html"\n'
    )
    Path("corpus.jsonl").write_text('{"text": "one"}\n')
    done = packtool("run", "c.toml", "--input", "corpus.jsonl", "--output", "out")
    assert done.stdout.endswith("\nWrote out/r.html.\n"), done


def test_names_that_are_nearly_right(place: Path) -> None:
    said = packtool("stats", "store", "--compare", "bdf", "-L", "32").stderr
    assert "Did you mean bfd (whole documents in bins, best fit decreasing)?" in said
    assert "Did you mean megatron?" in packtool("export", "store", "-o", "x", "--format", "megatrn").stderr


def test_sources_of_a_mixture_are_summed_up(place: Path) -> None:
    write_store(Path("wiki"), [7, 30])
    done = packtool("pack", "store", "wiki", "-o", "x", "--strategy", "bfd", "-L", "32", "--mix", "store=1,wiki=2")
    assert "\n  in batches: " in done.stdout, done
    assert "  packed again " in done.stdout
