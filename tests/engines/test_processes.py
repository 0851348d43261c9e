"""Tasks run the same for any number of workers, and stop when they must."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import packtool
from packtool.engines import Processes, Threads, Worker
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
    results = dict(engine.run(square, range(20), prepare=prepare, on_advance=seen.append))
    assert results == {n: n * n for n in range(20)}
    assert sorted(seen) == list(range(1, 20))


@pytest.mark.parametrize("prepare", PREPARE)
@pytest.mark.parametrize("engine", ENGINES)
def test_the_first_failing_task_in_order_is_the_error(engine: Processes | Threads, prepare: Any) -> None:
    with pytest.raises(DataError, match="task 3"):
        list(engine.run(fail_from_three, range(8), prepare=prepare))


NAPS = """
import time
def nap(n, worker):
    print("started", flush=True)
    time.sleep(60)
"""
SLEEPER = """
from packtool.engines import Processes
from naps import nap
list(Processes(2).run(nap, range(2)))
"""


def require_end_with_their_parent(place: Path, naps: str, sleeper: str, how: signal.Signals, *arguments: str) -> None:
    """Run a script whose workers take naps, end it when one has started, and wait until they are gone."""
    script = place / "sleeper.py"
    script.write_text(sleeper)
    (place / "naps.py").write_text(naps)
    environment = {**os.environ, "PYTHONPATH": str(Path(packtool.__file__).parents[1])}
    command = [sys.executable, str(script), *arguments]
    parent = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment)
    with parent:
        assert parent.stdout.readline() == b"started\n"
        started = time.monotonic()
        parent.send_signal(how)
        parent.stdout.read()  # returns when the last process that holds the other end is gone
        assert time.monotonic() - started < 30, "a worker outlived its parent"


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_workers_end_with_their_parent(tmp_path: Path, how: signal.Signals) -> None:
    require_end_with_their_parent(tmp_path, NAPS, SLEEPER, how)


SCRIPT = """
print("script", flush=True)
from packtool.engines import Processes
from naps import nothing, one
print(len([*Processes(2).run(one, [1, 2]), *Processes(2).run(one, [1, 2], prepare=nothing)]))
"""


def test_a_script_needs_no_guard_against_being_run_in_every_worker(tmp_path: Path) -> None:
    (tmp_path / "naps.py").write_text("def nothing():\n    pass\ndef one(task, worker):\n    return 1\n")
    (tmp_path / "script.py").write_text(SCRIPT)
    command = [sys.executable, str(tmp_path / "script.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=100)
    assert (done.returncode, done.stdout) == (0, "script\n4\n"), done.stderr
