from __future__ import annotations

import io

import numpy as np
from rich.console import Console

from packtool.metrics.tally import Tally
from packtool.report.packed import report_of_rows
from packtool.report.schema import PackedReport
from packtool.report.table import Column, Table
from packtool.report.terminal import tables
from packtool.report.terminal.reports import print_stats
from tests.reports import NOTHING, measured


def printed(report: PackedReport, *, full: bool = True) -> str:
    out = io.StringIO()
    print_stats(measured(report), Console(file=out, width=80), full=full)
    return out.getvalue()


def test_fits_eighty_columns(report: PackedReport) -> None:
    text = printed(report)
    assert max(len(line.rstrip()) for line in text.splitlines()) <= 80
    assert "atom shuffle (A = 8,192), seed 42, epoch 1" in text
    for word in ("padding", "truncation", "concatenation", "mean context", "steps per epoch", "Document length"):
        assert word in text
    assert "█" in text


def test_the_answer_takes_twenty_lines(report: PackedReport) -> None:
    lines = printed(report, full=False).splitlines()
    assert len(lines) <= 22
    assert any(line.startswith(("✓ ", "! ")) for line in lines)
    assert "--full" in lines[-1]


def test_columns_beyond_eighty_go_on_below_with_the_first_repeated() -> None:
    columns = [Column("name", str, words=True), *(Column(f"column {i}", lambda row: 12_345_678) for i in range(9))]
    out = io.StringIO()
    tables.print_table(Table("", columns, [("", ["a"])]), Console(file=out, width=80))
    lines = out.getvalue().splitlines()
    assert [line.split()[0][:4] for line in lines if line.strip()] == ["name", "────", "a", "name", "────", "a"]
    assert max(map(len, lines)) <= 80
    assert out.getvalue().count("12345678") == 9


def test_says_when_boundaries_are_unknown() -> None:
    report = report_of_rows([], NOTHING, strategy="concat", options={}, shuffle=None)
    assert "Document boundaries are not known (--no-segments)" in printed(report)


def test_of_no_documents() -> None:
    none = Tally(np.zeros(0, np.uint32), 8)
    report = report_of_rows([none], NOTHING, strategy="concat", options={}, shuffle=None)
    assert "0 documents" in printed(report)


def test_long_histograms_join_their_bins() -> None:
    bins = [(tables.span(i, i), 1) for i in range(100)]
    out = io.StringIO()
    Console(file=out, width=80).print(tables.bars(bins, "rows"))
    lines = [line for line in out.getvalue().splitlines() if line.strip()]
    assert len(lines) <= 14
    assert lines[0].split()[0] == "0–7"
    assert lines[-1].split()[0] == "96–99"
