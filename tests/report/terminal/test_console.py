"""Results in a pipe, a file and a terminal: styles, spaces, and figures written one way."""

from __future__ import annotations

import io

import numpy as np
import pytest

from packtool.report.terminal.console import results_console
from packtool.report.terminal.tables import plain_table

LENGTHS = np.clip(np.random.default_rng(4).lognormal(6, 1.2, 3000), 2, 50_000).astype(np.int64)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")


def print_table(stream: io.StringIO) -> str:
    table = plain_table("name", "figure")
    table.add_row("a", "1")
    table.add_row("longer", "", style="yellow")
    console = results_console(stream)
    console.print("[bold]title")
    console.print(table)
    return stream.getvalue()


def test_a_pipe_gets_no_spaces_at_the_ends_of_lines() -> None:
    assert print_table(io.StringIO()) == "title\nname    figure\n──────────────\na            1\nlonger\n"


def test_a_terminal_gets_styles() -> None:
    assert "\x1b[1mtitle\x1b[0m" in print_table(Terminal())


def test_no_color_leaves_no_style_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in print_table(Terminal())
