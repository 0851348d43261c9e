"""Reports in the terminal: what they begin with, and how wide they are."""

from __future__ import annotations

import io

import numpy as np
import pytest

from packtool.report.terminal.console import results_console
from packtool.report.terminal.reports import print_stats
from tests.reports import store_report

LENGTHS = np.clip(np.random.default_rng(4).lognormal(6, 1.2, 3000), 2, 50_000).astype(np.int64)


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")


@pytest.mark.parametrize("full", [False, True])
def test_a_comparison_begins_at_once_and_fits_80_columns(full: bool) -> None:
    out = io.StringIO()
    print_stats(store_report(LENGTHS, ["all"], [512, 2048]), results_console(out), full=full)
    lines = out.getvalue().splitlines()
    assert lines[0]
    assert [line for line in lines if line != line.rstrip()] == []
    tables = [line for line in lines if line.startswith(("concat ", "first-fit-shuffle", "bfd-extra "))]
    assert len(tables) >= 6
    assert all(len(line) <= 80 and line[-1] in "0123456789%×k" for line in tables)


def test_one_document_is_one_document() -> None:
    out = io.StringIO()
    print_stats(store_report(np.array([1234])), results_console(out))
    assert out.getvalue().startswith("<store> & more · 1 document\n")
    assert "1 document, 1,234 tokens; mean 1,234" in out.getvalue()
    assert "1,218–1,234 ██████████████████████████████ 1 document\n" in out.getvalue()
