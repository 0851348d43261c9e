"""Buckets written in one pass or two: memory decides which, and the bytes do not depend on it."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

import packtool
from tests.stores import contents
from tests.writing.cases import KINDS


def test_memory_decides_the_path(store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packtool.pack(store, tmp_path / "corpus", shuffle=False, **KINDS["concat"])
    monkeypatch.setattr("packtool.writing.shards.partition", _never)
    packtool.shuffle(tmp_path / "corpus", tmp_path / "whole", memory="1MB")
    with pytest.raises(AssertionError, match="partitioned"):
        packtool.shuffle(tmp_path / "corpus", tmp_path / "parts", memory="1kB")


def _never(*_: object, **__: object) -> None:
    raise AssertionError("partitioned")


@pytest.mark.parametrize(
    ("kind", "memory"),
    [
        ("concat-8", "20kB"),
        ("buckets", "1GB"),
        pytest.param("concat-8", "1GB", marks=pytest.mark.slow),
        pytest.param("buckets", "20kB", marks=pytest.mark.slow),
    ],
)
def test_killed_and_resumed(store: Path, tmp_path: Path, kind: str, memory: str) -> None:
    packtool.pack(store, tmp_path / "corpus", shuffle=False, shard_tokens=64 * 30, **KINDS[kind])
    packtool.shuffle(tmp_path / "corpus", tmp_path / "expected", seed=9)
    command = [str(tmp_path / "corpus"), "-o", str(tmp_path / "out"), "--seed", "9", "--memory", memory, "-q"]
    for syncs in (3, 14):
        # Killed while it makes a file durable: whatever it was doing stays half done.
        program = (
            "import os, signal, sys\n"
            "from packtool.cli import run\n"
            f"left, sync = [{syncs}], os.fsync\n"
            "def fsync(handle):\n"
            "    left[0] -= 1\n"
            "    os.kill(os.getpid(), signal.SIGKILL) if left[0] == 0 else sync(handle)\n"
            "os.fsync = fsync\n"
            "sys.exit(run(sys.argv[1:]))\n"
        )
        resume = ["--resume"] if (tmp_path / "out").exists() else []
        killed = subprocess.run([sys.executable, "-c", program, "shuffle", *command, *resume], check=False)
        assert killed.returncode == -signal.SIGKILL
        assert not (tmp_path / "out" / "manifest.json").exists()
    packtool.shuffle(tmp_path / "corpus", tmp_path / "out", seed=9, memory=memory, resume=True, quiet=True)
    assert contents(tmp_path / "out") == contents(tmp_path / "expected")
    assert packtool.verify(tmp_path / "out").problems == []
