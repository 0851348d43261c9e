"""More shards than a process may have open files: nothing is kept open that is only mapped."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import packtool
from tests.commands.test_shuffle import contents
from tests.stores import write_store

SHARDS = 200
PROGRAM = """
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))
import packtool

packtool.pack("store", "packed", strategy="concat", sequence_length=16, shard_tokens=32, seed=3)
packtool.pack("store", "twice", strategy="concat", sequence_length=16, shard_tokens=32, seed=3, memory=20_000)
packtool.shuffle("packed", "again", seed=4)
packtool.shuffle("again", "back", seed=3, memory=20_000)
assert packtool.verify("store").problems == packtool.verify("back").problems == []
assert sum(len(row) for row in packtool.open("back")) == packtool.stats("packed").ledger.output
"""


def test_two_hundred_shards_with_a_hundred_open_files(tmp_path: Path) -> None:
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] >= 100
    write_store(tmp_path / "store", [30] * SHARDS, per_shard=1)
    subprocess.run([sys.executable, "-c", PROGRAM], check=True, cwd=tmp_path)
    assert len(list((tmp_path / "packed").glob("tokens-*.npy"))) > SHARDS / 2
    packtool.pack(
        tmp_path / "store", tmp_path / "expected", strategy="concat", sequence_length=16, shard_tokens=32, seed=3
    )
    for name in ("packed", "twice", "back"):
        assert contents(tmp_path / name) == contents(tmp_path / "expected"), name
