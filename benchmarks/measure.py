"""One command, measured: wall and CPU seconds, peak memory and bytes written of its whole process tree."""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
EVERY = 0.1
"""Seconds between two looks at memory."""
_PR_SET_CHILD_SUBREAPER = 36


class FailedError(Exception):
    """A command ended with another status than 0: the last line it wrote to stderr."""


class TooSlowError(Exception):
    """A command took longer than its limit."""


@dataclass(frozen=True)
class Sample:
    """What one run took.

    Attributes:
        wall: seconds.
        cpu: seconds of all processes, those that outlived their parents included.
        peak_mb: the most memory that all had at once, without pages that map files, which the system can take back;
            memory that forked processes share counts once.
        written_mb: bytes that were handed to the disk.
        said: the JSON object on the last line of stdout, if there is one: what the command measured itself.
    """

    wall: float
    cpu: float
    peak_mb: float
    written_mb: float
    said: Mapping[str, Any]


def measure(
    command: Sequence[str | Path], *, limit: float = 600, env: Mapping[str, str] | None = None, cwd: Path = ROOT
) -> Sample:
    """Run a command, by default from the project's root. Nothing else may be started by this process meanwhile.

    Raises:
        FailedError: it did not end well.
        TooSlowError: it ran longer than `limit` seconds, and was ended with all below it.
    """
    # Processes whose parent ends become ours, so that their CPU seconds and bytes are counted too.
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        others = set(_below(os.getpid()))
        cpu, written, began = _cpu(), _written(), time.perf_counter()
        process = subprocess.Popen(
            [str(part) for part in command],
            stdout=out,
            stderr=err,
            cwd=cwd,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "", "PYTHONPATH": str(ROOT), **(env or {})},
            start_new_session=True,
        )
        peak, ended = [0], threading.Event()
        watcher = threading.Thread(target=_watch, args=(ended, peak))
        watcher.start()
        try:
            status = process.wait(limit)
            wall = time.perf_counter() - began
        except subprocess.TimeoutExpired:
            raise TooSlowError(f"more than {limit:g} s") from None
        finally:
            ended.set()
            watcher.join()
            _end(process, others)
        if status:
            raise FailedError(_last(err) or f"ended with status {status}")
        with suppress(ValueError):
            said = json.loads(_last(out) or "{}")
            return Sample(wall, _cpu() - cpu, peak[0] / 1e6, (_written() - written) / 1e6, said)
        return Sample(wall, _cpu() - cpu, peak[0] / 1e6, (_written() - written) / 1e6, {})


def _end(process: subprocess.Popen[bytes], others: set[int]) -> None:
    """End what is left of a command and collect it, and no processes that were there before it."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for _ in range(100):
        for left in (mine := set(_below(os.getpid())) - others):
            with suppress(ChildProcessError):
                os.waitpid(left, os.WNOHANG)
        if not mine:
            break
        time.sleep(0.02)


def _last(file: Any) -> str:
    file.seek(0)
    lines = [line for line in file.read().decode(errors="replace").splitlines() if line.strip()]
    return lines[-1].strip() if lines else ""


def _cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _written() -> int:
    """Bytes that this process and those it has collected have written, as Linux counts them; 0 elsewhere."""
    with suppress(OSError):
        for line in Path("/proc/self/io").read_text().splitlines():
            if line.startswith("write_bytes:"):
                return int(line.split()[1])
    return 0


def _watch(ended: threading.Event, peak: list[int]) -> None:
    while not ended.wait(EVERY):
        tree = list(_below(os.getpid()))
        peak[0] = max(peak[0], sum(_memory(each, shared=len(tree) > 1) for each in tree))


def _below(pid: int) -> Iterator[int]:
    """All processes under one."""
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with suppress(OSError):
                for child in map(int, (task / "children").read_text().split()):
                    yield child
                    yield from _below(child)


def _memory(pid: int, *, shared: bool) -> int:
    """Bytes of a process that map no file. Where others may share them, its part, which is dearer to ask for."""
    name, fields = ("smaps_rollup", ("Pss_Anon:", "Pss_Shmem:")) if shared else ("status", ("RssAnon:", "RssShmem:"))
    with suppress(OSError):
        lines = (line.split() for line in Path(f"/proc/{pid}/{name}").read_text().splitlines())
        return sum(int(line[1]) << 10 for line in lines if line and line[0] in fields)
    return 0


def python(*arguments: str | Path) -> list[str]:
    """The command line of a module, in this Python."""
    return [sys.executable, "-m", *map(str, arguments)]
