"""What is said of progress: a bar on a terminal, lines in a log, and rates of this run alone."""

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
from packtool.engines import Worker
from packtool.support import progress
from packtool.support.clock import Clock
from packtool.support.sizes import show_bytes
from packtool.text.corpus import blocks
from packtool.text.tokenizing import block as tasks
from tests.interrupting import Interrupted
from tests.shell import Shell
from tests.stores import write_store

ROOT = Path(__file__).parents[2]


PACK = ("pack", "store", "-o", "p", "--strategy", "bfd", "-L", "128")


@pytest.fixture
def place(here: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("PACKTOOL_PROGRESS", raising=False)
    write_store(here / "store", [50] * 400)
    return here


def test_a_log_has_a_line_now_and_then(place: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    shell(*PACK)
    assert shell.err == "", "a short run says nothing"
    monkeypatch.setattr(progress, "INTERVAL", 0.0)
    for quiet in (("--progress", "none"), ("--progress", "log", "-q")):
        shell(*PACK, *quiet, "--overwrite")
        assert shell.err == ""
    shell(*PACK, "--overwrite")
    lines = shell.err.splitlines()
    pattern = r"packtool: pack \d+ %, \S+ k?B of \S+ kB, \S+ \w+/s, \S+ tokens/s, \d+:\d\d left"
    assert lines
    assert all(re.fullmatch(pattern, line) for line in lines), lines
    assert lines[-1].startswith("packtool: pack 100 %")


@pytest.mark.parametrize(("mode", "drawn"), [("auto", True), ("bar", True), ("none", False)])
def test_a_bar_on_a_terminal_shows_tokens(place: Path, mode: str, drawn: bool) -> None:
    terminal, child = pty.openpty()
    fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    command = [sys.executable, "-m", "packtool", *PACK, "--progress", mode]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "80"}
    subprocess.run(command, stderr=child, stdout=subprocess.DEVNULL, env=environment, check=True)
    os.close(child)
    try:
        shown = os.read(terminal, 100_000).decode()
    except OSError:
        shown = ""
    os.close(terminal)
    assert ("pack " in shown) is drawn
    assert "5.00/" not in shown


def test_rows_and_hours() -> None:
    shown = progress.Progress(9000, "stats", unit=" rows", quiet=True)
    shown._begin -= 10
    shown.advance(10)
    assert shown.figures() == "10 of 9,000 rows, 2:29:50 left"


def test_a_resumed_run_tells_its_own_rate(here: Path, monkeypatch: pytest.MonkeyPatch, shell: Shell) -> None:
    """Work of an earlier run is neither this run's text nor its tokens: in run.json, in the log, in the summary."""
    monkeypatch.setattr(blocks, "SMALLEST", 20_000)  # of bytes in a block
    lines = [json.dumps({"text": f"document {line} " * 20}) for line in range(400)]
    Path("corpus.jsonl").write_text("\n".join(lines), encoding="utf-8")
    whole = packtool.tokenize("corpus.jsonl", "whole", workers=1)
    assert whole.run["this_run"] == {"text_bytes": whole.run["text_bytes"], "tokens": whole.counts["tokens"]}
    finished, run_task = 4, tasks.run

    def stop(work: tasks.Work, task: tasks.BlockTask, worker: Worker) -> tasks.BlockResult:
        if task.number == finished:
            raise Interrupted
        return run_task(work, task, worker)

    with monkeypatch.context() as patch, pytest.raises(Interrupted):
        patch.setattr(tasks, "run", stop)
        packtool.tokenize("corpus.jsonl", "out", workers=1)
    work = Path("out") / "unfinished"
    earlier = [json.loads(file.read_text())["done"] for file in work.glob("pieces/block/*.json")]
    assert len(earlier) == finished
    earlier = [each for each in earlier if each["encoder"]]
    text = sum(span["bytes"] for block in earlier for span in block["spans"])
    tokens = sum(shard["tokens"]["shape"][0] for block in earlier for shard in block["shards"])
    monkeypatch.setattr(progress, "INTERVAL", 0.0)
    monkeypatch.setenv("PACKTOOL_PROGRESS", "log")
    shell("tokenize", "corpus.jsonl", "-o", "out", "--resume", "-j", 1)
    found = json.loads((Path("out") / "run.json").read_text())
    assert found["text_bytes"] == whole.run["text_bytes"]
    assert found["this_run"] == {"text_bytes": found["text_bytes"] - text, "tokens": whole.counts["tokens"] - tokens}
    rate = found["this_run"]["tokens"] / max(found["written"]["wall"], 1e-3)
    assert f"({show_bytes(text)} by an earlier run) read in " in shell.out
    assert f", {rate:,.0f} tokens/s\n" in shell.out
    shares = [int(share) for share in re.findall(r"tokenize (\d+) %", shell.err)]
    assert shares[0] >= 100 * text // found["text_bytes"]
    assert shares[-1] == 100


def test_cpu_seconds_include_workers() -> None:
    clock = Clock()
    program = "import time\nwhile time.process_time() < 0.3: pass"
    subprocess.run([sys.executable, "-c", program], check=True)
    begin = time.process_time()
    assert clock.seconds()["cpu"] >= 0.3
    assert time.process_time() - begin < 0.3
