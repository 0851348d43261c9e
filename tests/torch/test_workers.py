"""Worker processes of the loader end when the process that trains is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.making import Make

pytestmark = pytest.mark.torch
pytest.importorskip("torch")

TRAIN = """
import multiprocessing, sys, time
from packtool.torch import Loader

if __name__ == "__main__":
    path, start = sys.argv[1:]
    loader = Loader(path, batch_size=32, epochs=50, num_workers=2, multiprocessing_context=start)
    batches = iter(loader)
    next(batches)
    time.sleep(2)  # workers read ahead, until the pipe is full
    print(*(child.pid for child in multiprocessing.active_children()), flush=True)
    time.sleep(600)
"""


def runs(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads /proc")
@pytest.mark.parametrize("start", ["fork", "spawn", "forkserver"])
def test_workers_end_with_the_process_that_trains(make: Make, tmp_path: Path, start: str) -> None:
    rows = make([4000, 2000, 3000, 900] * 40, rows={"strategy": "bfd", "sequence_length": 4096}) / "rows"
    (tmp_path / "train.py").write_text(TRAIN)
    command = [sys.executable, "-W", "ignore", str(tmp_path / "train.py"), str(rows), start]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as training:
        workers = [int(each) for each in training.stdout.readline().split()]
        training.send_signal(signal.SIGKILL)
        try:
            assert len(workers) >= 2
            for _ in range(150):
                if not any(map(runs, workers)):
                    return
                time.sleep(0.1)
            pytest.fail("workers live on")
        finally:
            for worker in filter(runs, workers):
                os.kill(worker, signal.SIGKILL)
