"""Tasks run the same for any number of workers, and stop when they must."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from packtool.engines import Processes, RunOptions, Threads, Worker
from packtool.errors import DataError


def square(n: int, worker: Worker) -> int:
    worker.advance(n)
    return n * n


def fail_from_three(n: int, worker: Worker) -> int:
    if n >= 3:
        time.sleep(0.2 if n == 3 else 0)  # the later error comes first in time
        raise DataError("bad", f"task {n}", remedy="fix it")
    return n


def die(n: int, worker: Worker) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return n


ENGINES = [Processes(1), Processes(2), Processes(5), Threads(1), Threads(3)]
PREPARE = [None, int]
"""What workers that are forked load first."""


@pytest.mark.parametrize("prepare", PREPARE)
@pytest.mark.parametrize("engine", ENGINES)
def test_every_task_runs_once_and_reports(engine: Processes | Threads, prepare: Any) -> None:
    seen: list[int] = []
    results = dict(engine.run(square, range(20), RunOptions(prepare=prepare, on_advance=seen.append)))
    assert results == {n: n * n for n in range(20)}
    assert sorted(seen) == list(range(1, 20))


@pytest.mark.parametrize("prepare", PREPARE)
@pytest.mark.parametrize("engine", ENGINES)
def test_the_first_failing_task_in_order_is_the_error(engine: Processes | Threads, prepare: Any) -> None:
    with pytest.raises(DataError, match="task 3"):
        list(engine.run(fail_from_three, range(8), RunOptions(prepare=prepare)))


NAPS = """
import os, sys, time
def prepare():
    if sys.argv[1] == "loading":
        os.write(1, b"started\\n")
        time.sleep(60)
def nap(n, worker):
    os.write(1, b"started\\n")
    time.sleep(60)
"""
SLEEPER = """
import sys
from packtool.engines import Processes, RunOptions
from naps import nap, prepare
list(Processes(2).run(nap, range(2), RunOptions(prepare=None if sys.argv[1] == "started anew" else prepare)))
"""


@pytest.mark.parametrize(
    ("workers", "how"),
    [
        ("started anew", signal.SIGKILL),
        ("started anew", signal.SIGINT),
        ("forked", signal.SIGKILL),
        ("forked", signal.SIGINT),
        ("loading", signal.SIGINT),  # after SIGKILL what is being loaded is loaded first
    ],
)
def test_workers_end_with_their_parent(tmp_path: Path, workers: str, how: signal.Signals) -> None:
    """It is ended when one of them has begun a nap."""
    (tmp_path / "sleeper.py").write_text(SLEEPER)
    (tmp_path / "naps.py").write_text(NAPS)
    command = [sys.executable, str(tmp_path / "sleeper.py"), workers]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as parent:
        assert parent.stdout.readline() == b"started\n"
        started = time.monotonic()
        parent.send_signal(how)
        parent.stdout.read()  # returns when the last process that holds the other end is gone
        assert time.monotonic() - started < 30, "a worker outlived its parent"


SCRIPT = """
print("script", flush=True)
from packtool.engines import Processes, RunOptions
from naps import nothing, one
print(len([*Processes(2).run(one, [1, 2]), *Processes(2).run(one, [1, 2], RunOptions(prepare=nothing))]))
"""


def test_a_script_needs_no_guard_against_being_run_in_every_worker(tmp_path: Path) -> None:
    (tmp_path / "naps.py").write_text("def nothing():\n    pass\ndef one(task, worker):\n    return 1\n")
    (tmp_path / "script.py").write_text(SCRIPT)
    command = [sys.executable, str(tmp_path / "script.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=100)
    assert (done.returncode, done.stdout) == (0, "script\n4\n"), done.stderr
