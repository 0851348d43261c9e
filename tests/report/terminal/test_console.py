"""Results in a pipe, a file and a terminal: styles, spaces, and figures written one way."""

from __future__ import annotations

import io

import numpy as np
import pytest

from packtool.report.table import Column, Table
from packtool.report.terminal.console import results_console
from packtool.report.terminal.tables import print_table

LENGTHS = np.clip(np.random.default_rng(4).lognormal(6, 1.2, 3000), 2, 50_000).astype(np.int64)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")


def printed(stream: io.StringIO) -> str:
    columns = [Column("name", str, words=True), Column("figure", {"a": "1", "longer": ""}.__getitem__)]
    console = results_console(stream)
    console.print("[bold]title")
    print_table(Table("", columns, [("", ["a", "longer"])]), console)
    return stream.getvalue()


def test_a_pipe_gets_no_spaces_at_the_ends_of_lines() -> None:
    assert printed(io.StringIO()) == "title\nname    figure\n──────────────\na            1\nlonger\n"


def test_a_terminal_gets_styles() -> None:
    assert "\x1b[1mtitle\x1b[0m" in printed(Terminal())


def test_no_color_leaves_no_style_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in printed(Terminal())
