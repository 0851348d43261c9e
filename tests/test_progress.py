"""What is said of progress: a bar on a terminal, lines in a log, and rates of this run alone."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

import packtool
from packtool import progress
from packtool.cli import run
from packtool.clock import Clock
from tests.stores import write_store

ROOT = Path(__file__).parents[1]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(progress, "_mode", "auto")
    write_store(Path("store"), [50] * 400)
    return tmp_path


def test_a_log_has_a_line_now_and_then(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "INTERVAL", 0.0)
    assert run(["pack", "store", "-o", "p", "--strategy", "bfd", "-L", "128"]) == 0
    lines = capsys.readouterr().err.splitlines()
    pattern = r"packtool: pack \d+ %, \S+ k?B of \S+ kB, \S+ \w+/s, \S+ tokens/s, \d+:\d\d left"
    assert lines
    assert all(re.fullmatch(pattern, line) for line in lines), lines
    assert lines[-1].startswith("packtool: pack 100 %")


def test_a_short_run_says_nothing_in_a_log(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["pack", "store", "-o", "p", "--strategy", "bfd", "-L", "128"]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(("mode", "quiet"), [("none", False), ("log", True)])
def test_none_and_quiet(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, mode: str, quiet: bool
) -> None:
    monkeypatch.setattr(progress, "INTERVAL", 0.0)
    arguments = ["pack", "store", "-o", "p", "--strategy", "bfd", "-L", "128", "--progress", mode]
    assert run([*arguments, *["-q"] * quiet]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(("mode", "drawn"), [("auto", True), ("bar", True), ("none", False)])
def test_a_bar_on_a_terminal_shows_tokens(place: Path, mode: str, drawn: bool) -> None:
    terminal, child = pty.openpty()
    fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    command = [sys.executable, "-m", "packtool", "pack", "store", "-o", "p", "--strategy", "bfd", "-L", "128"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "80"}
    subprocess.run([*command, "--progress", mode], stderr=child, stdout=subprocess.DEVNULL, env=environment, check=True)
    os.close(child)
    try:
        shown = os.read(terminal, 100_000).decode()
    except OSError:
        shown = ""
    os.close(terminal)
    assert ("pack " in shown) is drawn
    assert "5.00/" not in shown


def test_an_unknown_way(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["verify", "store", "--progress", "bra"]) == 2
    assert capsys.readouterr().err == (
        "packtool: error[bad-option]: --progress: 'bra' is not a known value. Did you mean bar?\n"
    )


def test_rows_and_hours() -> None:
    shown = progress.Progress(9000, "stats", unit=" rows", quiet=True)
    shown._begin -= 10
    shown.advance(10)
    assert shown.figures() == "10 of 9,000 rows, 2:29:50 left"


def test_a_resumed_run_tells_its_own_rate(tmp_path: Path) -> None:
    """Work of an earlier run is neither this run's text nor its tokens."""
    from packtool.tokenizing import job as jobs

    corpus = tmp_path / "corpus"
    corpus.mkdir()
    for number in range(4):
        lines = [json.dumps({"text": f"document {number} {line} " * 20}) for line in range(50)]
        (corpus / f"{number}.jsonl").write_text("\n".join(lines), encoding="utf-8")
    first = packtool.tokenize(corpus, tmp_path / "a", workers=1)
    assert first.run["this_run"] == {"text_bytes": first.run["text_bytes"], "tokens": first.counts["tokens"]}
    job = object.__new__(jobs.Job)
    job.results, job.earlier = {}, frozenset()
    assert job.done_now() == {"text_bytes": 0, "tokens": 0}


def test_cpu_seconds_include_workers() -> None:
    clock = Clock()
    program = "import time\nwhile time.process_time() < 0.3: pass"
    subprocess.run([sys.executable, "-c", program], check=True)
    begin = time.process_time()
    assert clock.seconds()["cpu"] >= 0.3
    assert time.process_time() - begin < 0.3
