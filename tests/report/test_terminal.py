"""Reports in the terminal, a pipe and a file: styles, spaces, and how wide they are."""

import io
import re

import numpy as np
import pytest
from rich.console import Console

from packtool.report.console import results_console
from packtool.report.tables import Table, TableColumn
from packtool.report.terminal import bars, print_stats, print_table
from packtool.report.types import PackedReport
from tests.reports import NO_DOCUMENTS, measured, store_report, unknown_rows

LENGTHS = np.clip(np.random.default_rng(4).lognormal(6, 1.2, 3000), 2, 50_000).astype(np.int64)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")


def in_stream(stream: io.StringIO) -> str:
    columns = [TableColumn("name", str, words=True), TableColumn("figure", {"a": "1", "longer": ""}.__getitem__)]
    console = results_console(stream)
    console.print("[bold]title")
    print_table(Table("", columns, [("", ["a", "longer"])]), console)
    return stream.getvalue()


def test_a_pipe_gets_no_spaces_at_the_ends_of_lines() -> None:
    assert in_stream(io.StringIO()) == "title\nname    figure\n──────────────\na            1\nlonger\n"


def test_a_terminal_gets_styles() -> None:
    assert "\x1b[1mtitle\x1b[0m" in in_stream(Terminal())


def test_no_color_leaves_no_style_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in in_stream(Terminal())


@pytest.mark.parametrize("full", [False, True])
def test_a_comparison_begins_at_once_and_fits_80_columns(full: bool) -> None:
    out = io.StringIO()
    print_stats(store_report(LENGTHS, ["all"], [512, 2048]), results_console(out), full=full)
    lines = out.getvalue().splitlines()
    assert lines[0]
    assert [line for line in lines if line != line.rstrip()] == []
    tables = [line for line in lines if line.startswith(("concat ", "first-fit-shuffle", "bfd-extra "))]
    assert len(tables) >= 6
    assert "* the best of its column   ! cuts more than half, or pads more than a quarter" in lines
    assert all(len(line) <= 80 and line[-1] in "0123456789%×k" for line in tables)


def test_one_document_is_one_document() -> None:
    out = io.StringIO()
    print_stats(store_report(np.array([1234])), results_console(out))
    assert out.getvalue().startswith("<store> & more · 1 document, 1,234 tokens\n")
    assert "1 document, 1,234 tokens; mean 1,234" in out.getvalue()
    assert "1,218–1,234 ██████████████████████████████ 1 document\n" in out.getvalue()


def printed(report: PackedReport, *, full: bool = True) -> str:
    out = io.StringIO()
    print_stats(measured(report), Console(file=out, width=80), full=full)
    return out.getvalue()


def test_fits_eighty_columns(report: PackedReport) -> None:
    text = printed(report)
    assert max(len(line.rstrip()) for line in text.splitlines()) <= 80
    assert "bfd · rows of 8,192 tokens · rows shuffled, seed 42" in text
    for word in ("padding", "cut, of all", "concatenation", "context", "steps", "Document length"):
        assert word in text
    assert "█" in text
    assert re.search(r"^(input text|output) +[\d,]+ +(\d rows?)?$", text, re.M), "an amount is no share of itself"


def test_the_answer_takes_twenty_lines(report: PackedReport) -> None:
    lines = printed(report, full=False).splitlines()
    assert len(lines) <= 22
    assert any(line.startswith(("✓ ", "! ")) for line in lines)
    assert "--full" in lines[-1]


@pytest.mark.parametrize("width", [40, 60, 80])
def test_columns_beyond_the_width_go_on_below_with_the_first_repeated(width: int) -> None:
    columns = [
        TableColumn("name", str, words=True),
        *(TableColumn(f"column {i}", lambda row: 12_345_678) for i in range(9)),
    ]
    out = io.StringIO()
    print_table(Table("", columns, [("", ["a"])]), Console(file=out, width=width))
    lines = out.getvalue().splitlines()
    begins = [line.split()[0][:4] for line in lines if line.strip()]
    assert begins == ["name", "────", "a"] * (len(begins) // 3)
    assert len(begins) > 3
    assert max(map(len, lines)) <= width
    assert out.getvalue().count("12345678") == 9


def test_says_when_boundaries_are_unknown() -> None:
    assert "Document boundaries are not known (--no-segments)" in printed(unknown_rows())


def test_of_no_documents() -> None:
    assert "0 documents" in printed(unknown_rows(NO_DOCUMENTS))


def test_long_histograms_join_their_bins() -> None:
    bins = [(i, i, 1) for i in range(100)]
    out = io.StringIO()
    Console(file=out, width=80).print(bars(bins, "rows"))
    lines = [line for line in out.getvalue().splitlines() if line.strip()]
    assert len(lines) <= 14
    assert lines[0].split()[0] == "0–7"
    assert lines[-1].split()[0] == "96–99"
