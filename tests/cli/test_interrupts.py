"""Ctrl-C, SIGTERM and SIGHUP: a command ends soon, leaves nothing behind, and goes on to the same bytes."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import packtool as package
from tests.cli.running import ENVIRONMENT, packtool
from tests.stores import contents, write_store

# A disk so slow that reading one batch takes minutes, and the grace that a command has is as short as a test wants it.
SLOW_DISK = """
import sys, time
from packtool.cli import interrupts, main
from packtool.rows.unit_source import PackedSource, StoreSource

def stuck(source, units, *_):
    if not isinstance(units, int) and not len(units):
        return
    print("reading", flush=True)
    time.sleep(120)

interrupts.GRACE_SECONDS = 0.2
for kind in (PackedSource, StoreSource):
    kind.read = kind.scan = stuck
main(sys.argv[1:])
"""
PACK = ["pack", "store", "--strategy", "concat", "-L", "16"]


def interrupt(program: list[str], arguments: list[str], number: signal.Signals) -> tuple[int, str]:
    """Run it until it says something on standard output, then send the signal; its status and standard error."""
    process = subprocess.Popen(
        [sys.executable, *program, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
        start_new_session=True,
    )
    process.stdout.readline()
    os.killpg(process.pid, number)  # as a terminal and a scheduler do: to all processes
    _, error = process.communicate(timeout=60)
    return process.returncode, error


@pytest.mark.parametrize(
    ("arguments", "number"),
    [
        (PACK, signal.SIGINT),
        ([*PACK, "--memory", "4kB"], signal.SIGTERM),
        (["shuffle", "packed", "--memory", "4kB"], signal.SIGINT),
    ],
)
def test_in_the_middle_of_a_shard(here: Path, arguments: list[str], number: signal.Signals) -> None:
    write_store(Path("store"), [9, 70, 33] * 40)
    package.pack("store", "packed", strategy="concat", sequence_length=16, shuffle=False)
    command = [*arguments, "-o", "out", "-q"]
    status, error = interrupt(["-c", SLOW_DISK], command, number)
    assert (status, error) == (130, "packtool: interrupted; with --resume, what is finished is kept\n")
    assert not Path("out/manifest.json").exists()
    assert packtool(*command, "--resume").returncode == 0
    package.pack("store", "expected", strategy="concat", sequence_length=16)
    assert contents(Path("out")) == contents(Path("expected"))


WORKERS = """
import multiprocessing.process, sys
from packtool.engines import Processes
from packtool.text.corpus import blocks
from packtool.cli import main

run = Processes.run
def started(*arguments, **options):
    for number, result in run(*arguments, **options):
        print("working", flush=True)
        yield number, result

Processes.run = started
blocks.block_bytes = lambda *_: 1 << 18
multiprocessing.process.current_process()._config["semprefix"] = sys.argv[1]  # to tell ours from others'
main(sys.argv[2:])
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_worker_processes_leave_nothing_behind(tmp_path: Path, number: signal.Signals) -> None:
    program = tmp_path / "program.py"
    program.write_text(WORKERS)
    for part in range(4):
        lines = [json.dumps({"text": f"text {part} {line} " * 200}) for line in range(2000)]
        (tmp_path / f"{part}.jsonl").write_text("\n".join(lines))
    inputs = [str(tmp_path / f"{part}.jsonl") for part in range(4)]
    shared = Path("/dev/shm")
    mark = f"packtool-{os.getpid()}-{number}"
    command = ["tokenize", *inputs, "-o", str(tmp_path / "out"), "--workers", "2", "-q", "--encoder", "tokenizers"]
    status, error = interrupt([str(program), f"/{mark}"], command, number)
    assert (status, error) == (130, "packtool: interrupted; with --resume, what is finished is kept\n")
    if shared.exists():
        assert not list(shared.glob(f"*{mark}*"))
    assert not (tmp_path / "out" / "manifest.json").exists()


STUCK = """
import sys, time
from packtool.cli import interrupts, main
from packtool.commands import tokenize

def stuck(*_, **__):
    print("reading", flush=True)
    while True:
        try:
            time.sleep(120)
        except KeyboardInterrupt:
            pass  # as if it waited for a disk

interrupts.GRACE_SECONDS = 0.2
tokenize.run_blocks = stuck
main(sys.argv[1:])
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_temporary_directories_go_although_the_command_does_not_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setitem(ENVIRONMENT, "TMPDIR", str(tmp_path / "tmp"))
    (tmp_path / "a.jsonl").write_text('{"text": "a"}\n')
    status, error = interrupt(["-c", STUCK], ["stats", str(tmp_path / "a.jsonl"), "-q"], number)
    assert (status, error) == (130, "packtool: interrupted\n")
    assert list((tmp_path / "tmp").iterdir()) == []


IMPORTING = """
import sys, time
from importlib import abc

class Slow(abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == slow:
            sys.meta_path.remove(self)
            print("importing", flush=True)
            time.sleep(1)

slow = sys.argv.pop(1)
sys.meta_path.insert(0, Slow())
sys.argv[0] = "packtool"
from packtool.__main__ import main
main()
"""


@pytest.mark.parametrize(
    ("module", "number"),
    [
        ("typer", signal.SIGINT),
        ("typer", signal.SIGHUP),
        ("packtool.cli.results", signal.SIGTERM),
        ("numpy", signal.SIGINT),
        ("numpy", signal.SIGTERM),
        ("packtool.options.inspecting", signal.SIGHUP),
    ],
)
def test_while_modules_are_imported(here: Path, module: str, number: signal.Signals) -> None:
    """Before there is a command, and while it loads what it needs."""
    write_store(Path("store"), [9, 70, 33])
    status, error = interrupt(["-c", IMPORTING, module], ["verify", "store"], number)
    assert (status, error) == (130, "packtool: interrupted\n")


IGNORED = "import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)"


def test_what_is_ignored_stays_ignored(here: Path) -> None:
    """As under nohup, whose commands go on when their terminal is closed."""
    write_store(Path("store"), [9, 70, 33])
    program = IGNORED + IMPORTING
    status, error = interrupt(["-c", program, "numpy"], ["verify", "store", "-q"], signal.SIGHUP)
    assert (status, error) == (0, "")


TWICE = """
import os, signal, sys, warnings
from packtool.cli import main
from packtool.commands import info

class Left:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)

def stuck(path):
    print("reading", flush=True)
    left = Left()
    try:
        del left  # an interrupt where no exception can be raised
        os.kill(os.getpid(), signal.SIGINT)
        sys.stdin.read()
    finally:
        os.kill(os.getpid(), signal.SIGINT)  # again, while it cleans up

info.place_of = stuck
main(sys.argv[1:])
"""


def test_interrupts_that_come_at_once(here: Path) -> None:
    assert interrupt(["-c", TWICE], ["info", "store"], signal.SIGINT) == (130, "packtool: interrupted\n")
