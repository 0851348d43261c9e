"""Worker processes of the loader end when the process that trains is killed, and say what is wrong with a file."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.making import Make

pytestmark = pytest.mark.torch
pytest.importorskip("torch")

from torch.utils.data import DataLoader  # noqa: E402

from packtool.errors import DataError  # noqa: E402
from packtool.torch import GlobalBatches, Loader, Samples, collate  # noqa: E402

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


def damaged(file: Path, how: str) -> None:
    """Damage a file that is being read."""
    content = file.read_bytes()
    if how == "gone":
        file.unlink()
    elif how == "empty":
        file.write_bytes(b"")
    elif how == "short":
        file.write_bytes(content[:-8])
    elif how == "header":
        file.write_bytes(b"?" + content[1:])
    else:
        shutil.rmtree(file.parent)


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
@pytest.mark.parametrize(
    ("file", "how", "said"),
    [
        ("tokens-00000.npy", "gone", "named in the manifest, but not there"),
        ("tokens-00000.npy", "short", "but an array of shape"),
        ("tokens-00000.npy", "empty", "its header is damaged"),
        ("segments-00000.npy", "header", "its header is damaged"),
        ("manifest.json", "gone", "changed since it was opened: its manifest is gone"),
        ("manifest.json", "short", "changed since it was opened: its manifest is another"),
        ("manifest.json", "directory", "changed since it was opened"),
    ],
)
def test_a_worker_says_what_is_wrong_with_a_file(make: Make, tmp_path: Path, file: str, how: str, said: str) -> None:
    """As the process that trains does. PyTorch would make another error of it, of its text alone."""
    place = make([5 + n % 40 for n in range(90)], at=tmp_path, rows={"strategy": "bfd", "sequence_length": 64})
    loaders = [Loader(place / "rows", batch_size=4, num_workers=number) for number in (0, 1)]
    samples = Samples(place / "rows")
    own = DataLoader(samples, batch_sampler=GlobalBatches(samples, 4), collate_fn=collate, num_workers=1)
    damaged(place / "rows" / file, how)
    found = []
    for loader in loaders:
        with pytest.raises(DataError, match=said) as caught:
            list(loader)
        found.append((str(caught.value), caught.value.code, caught.value.where))
    assert found[0] == found[1]
    with pytest.raises(RuntimeError, match=said):
        list(own)
