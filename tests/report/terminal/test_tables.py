from __future__ import annotations

import io

import numpy as np
from rich.console import Console

from packtool.metrics import Tally
from packtool.report.packed import report_of_rows
from packtool.report.schema import PackedReport
from packtool.report.terminal import print_report, tables
from tests.reports import NOTHING


def printed(report: PackedReport, width: int = 80) -> str:
    out = io.StringIO()
    print_report(report, Console(file=out, width=width))
    return out.getvalue()


def test_fits_eighty_columns(report: PackedReport) -> None:
    text = printed(report)
    assert max(len(line.rstrip()) for line in text.splitlines()) <= 80
    assert "atom shuffle (A = 8,192), seed 42, epoch 1" in text
    for word in ("padding", "truncation", "concatenation", "mean context", "steps per epoch", "Document length"):
        assert word in text
    assert "█" in text


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
