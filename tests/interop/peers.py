"""Programs that run where other tools are installed, in environments of their own."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent


@functools.cache
def python(peer: str) -> str:
    """The Python that has a tool; it is installed the first time."""
    command = [sys.executable, "-m", "benchmarks.peers", peer]
    return subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True, text=True).stdout.strip()


def in_peer(peer: str, place: Path, *arguments: object) -> str:
    """Run a script with the Python of a tool, in a directory; return what it prints."""
    command = [python(peer), *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TOKENIZERS_PARALLELISM": "false"}
    done = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@contextmanager
def running(*command: object, env: Mapping[str, str] | None = None) -> Iterator[subprocess.Popen[bytes]]:
    """A server that runs for a while, with these variables, too."""
    process = subprocess.Popen(
        [*map(str, command)], env={**os.environ, **(env or {})}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
