"""Workers that are forked from a process that has loaded what they need."""

import os
import signal
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from packtool.engines import Processes, RunOptions, Worker
from packtool.errors import DataError, PacktoolError
from packtool.text.encoding.encoder_choice import installed
from tests.engines.test_processes import die, square
from tests.shell import python

needs_forks = pytest.mark.skipif(sys.platform != "linux", reason="workers are forked on Linux only")
LOADED: list[int] = []


def load(path: Path) -> None:
    LOADED.append(os.getpid())
    with path.open("a") as file:
        file.write("loaded\n")


def who_loaded(_: int, worker: Worker) -> tuple[int, list[int]]:
    time.sleep(0.2)  # so that every worker gets a task
    return os.getpid(), LOADED


def fail(error: Exception) -> None:
    raise error


def end_abruptly() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def kill_the_server(n: int, worker: Worker) -> int:
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(60)
    return n


@needs_forks
def test_it_is_loaded_once_for_all_workers(tmp_path: Path) -> None:
    found = dict(Processes(3).run(who_loaded, range(6), RunOptions(prepare=partial(load, tmp_path / "log"))))
    assert (tmp_path / "log").read_text() == "loaded\n"
    assert len({worker for worker, _ in found.values()}) == 3
    (server,) = {who for _, loaders in found.values() for who in loaders}
    assert server not in {os.getpid(), *(worker for worker, _ in found.values())}
    assert list(Processes(1).run(square, [3], RunOptions(prepare=partial(load, tmp_path / "no log")))) == [(0, 9)]
    assert not (tmp_path / "no log").exists()


@needs_forks
@pytest.mark.parametrize("error", [DataError("bad", "not loaded", remedy="fix it"), ValueError("not loaded")])
def test_what_loading_raises_is_the_error(error: Exception) -> None:
    with pytest.raises(type(error), match="not loaded"):
        list(Processes(2).run(square, range(8), RunOptions(prepare=partial(fail, error))))


@needs_forks
@pytest.mark.parametrize(("prepare", "task"), [(None, die), (int, die), (end_abruptly, square), (int, kill_the_server)])
def test_a_killed_process_is_one_clear_error(prepare: object, task: object) -> None:
    with pytest.raises(PacktoolError, match="worker process ended abruptly") as caught:
        list(Processes(2).run(task, range(4), RunOptions(prepare=prepare)))  # type: ignore[arg-type]
    assert caught.value.code == "worker-died"


@needs_forks
def test_who_stops_early_leaves_no_worker_behind(tmp_path: Path) -> None:
    results = Processes(2).run(who_loaded, range(50), RunOptions(prepare=partial(load, tmp_path / "log")))
    worker = next(results)[1][0]
    results.close()
    for _ in range(1000):
        try:
            state = Path(f"/proc/{worker}/stat").read_text().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return
        if state in ("X", "Z"):
            return
        time.sleep(0.01)  # its files are closed, but it is not quite gone
    raise AssertionError("it works on")


THREADS = """
import os
import numpy
from packtool.text.encoding.encoder_choice import choose_encoder, installed, load_encoder
from packtool.text.encoding.load import find_tokenizer
def threads():
    return len(os.listdir("/proc/self/task"))
before = threads()
found = find_tokenizer()
load_encoder(choose_encoder(found, "gigatoken"), found.data).encode(["one", "two"])
assert threads() == before, "loading or encoding starts a thread"
child = os.fork()
if child == 0:
    os._exit(threads())
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
assert threads() == 1, "the threads of NumPy are still there after the fork"
"""


@needs_forks
@pytest.mark.skipif(not installed("gigatoken"), reason="there is no gigatoken for this platform")
def test_nothing_that_is_loaded_before_a_fork_has_threads() -> None:
    python(THREADS)


MASKS = """
import signal
def held_back(*_):
    return signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, [])
def prepare():
    assert held_back()
"""


@needs_forks
def test_control_c_in_a_terminal_is_the_parents_alone(tmp_path: Path) -> None:
    """A terminal sends it to all processes: one that loads or works would print a traceback."""
    (tmp_path / "masks.py").write_text(MASKS)
    script = (
        "from packtool.engines import Processes, RunOptions; from masks import held_back, prepare\n"
        "print([held for _, held in Processes(2).run(held_back, range(2), RunOptions(prepare=prepare))])"
    )
    assert python(script, cwd=tmp_path) == "[True, True]\n"
