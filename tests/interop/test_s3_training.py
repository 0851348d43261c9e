"""Trainers that read a bucket."""

import os
import subprocess
import sys

import numpy as np
import pytest

from tests.interop.object_store import ROOT

pytestmark = pytest.mark.interop

OPEN = """
import os, sys, numpy as np, packtool
url, cache, size, way = sys.argv[1:5]
dataset = packtool.open(url, cache=cache, cache_bytes=size, fetch="rows" if way == "rows" else "shards")
if way == "fork":
    dataset[0]
    if (child := os.fork()):
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
rows = range(len(dataset))
tokens = np.stack([dataset[row] for row in (reversed(rows) if way == "backwards" else rows)])
batch = dataset.batch([len(dataset) - 1, 0, 5])
np.savez(sys.argv[5], tokens=tokens, labels=batch["labels"], epoch=dataset.epoch(3)[:])
os._exit(0)
"""


def reader(url, cache, size, way, out, env):
    command = [sys.executable, "-c", OPEN, url, str(cache), size, way, str(out)]
    return subprocess.Popen(command, env={**os.environ, **env}, cwd=ROOT, stderr=subprocess.PIPE, text=True)


def test_trainers_read_a_bucket_through_a_cache_that_is_bounded_and_shared(there, env, local, tmp_path):
    import packtool as here

    dataset = here.open(local / "packed")
    largest = max(file.stat().st_size for file in (local / "packed").glob("tokens-*.npy"))
    small = str(2 * largest)
    running = {
        way: reader(f"{there}/packed", tmp_path / "small", small, way, tmp_path / f"{way}.npz", env)
        for way in ("forwards", "backwards", "fork", "rows")
    }
    for way, each in running.items():
        _, said = each.communicate(timeout=240)
        if way == "fork":  # of a process that has read the bucket before
            assert "clients of object stores do not survive a fork" in said
            continue
        assert each.returncode == 0, said
        found = np.load(tmp_path / f"{way}.npz")
        expected = dataset[:]
        assert (found["tokens"] == (expected[::-1] if way == "backwards" else expected)).all()
        assert (found["labels"] == dataset.batch([len(dataset) - 1, 0, 5])["labels"]).all()
        assert (found["epoch"] == dataset.epoch(3)[:]).all()
    kept = sum(file.stat().st_size for file in (tmp_path / "small" / "datasets").rglob("*") if file.is_file())
    whole = sum(file.stat().st_size for file in (local / "packed").rglob("*.npy"))
    assert kept <= 2 * largest + 3 * largest < whole
