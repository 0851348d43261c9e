"""FlexAttention keeps documents apart where rows are split among processes: examples/train/split_rows.py, on CPUs."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import packtool
from tests.stores import write_store
from tests.test_docs import ROOT

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

PROGRAM = Path(__file__).with_name("context.py")
ROWS, LENGTH = 2, 512  # rows of at least 128 tokens for each process


def losses(place: Path, size: int, *, apart: bool) -> torch.Tensor:
    """The loss of each place of a batch, put together from those of all processes of a group."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        both = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(one.getsockname()[1]), "WORLD_SIZE": str(size)}
    # To compile the mask takes half a minute, and changes nothing but the time.
    both |= {
        "PYTHONPATH": os.pathsep.join(map(str, (ROOT, ROOT / "examples" / "train"))),
        "TORCH_COMPILE_DISABLE": "1",
        "OMP_NUM_THREADS": "1",
    }
    outs = [place / f"{size}-{rank}.pt" for rank in range(size)]
    group = [
        subprocess.Popen(
            [sys.executable, "-W", "ignore", str(PROGRAM), str(place / "rows"), str(out), str(int(apart))],
            env={**os.environ, **both, "RANK": str(rank)},
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank, out in enumerate(outs)
    ]
    for process in group:
        _, errors = process.communicate(timeout=300)
        assert process.returncode == 0, errors[-3000:]
    parts = [torch.load(out) for out in outs]
    where, loss = (torch.cat([part[n] for part in parts]) for n in (0, 1))
    assert where.sort().values.tolist() == list(range(ROWS * LENGTH)), "each place on one rank"
    return loss[where.argsort()]


def test_each_token_has_the_loss_that_it_has_in_one_process(tmp_path: Path) -> None:
    store = write_store(tmp_path / "store", np.random.default_rng(4).integers(2, 150, 60).tolist())
    packtool.pack(store, tmp_path / "rows", strategy="bfd", sequence_length=LENGTH)
    alone, split = (losses(tmp_path, size, apart=True) for size in (1, 2))
    assert (alone - split).abs().max() < 2e-6
    together = losses(tmp_path, 2, apart=False)
    assert (alone - together).abs().max() > 1e-2, "where documents see each other, losses are others"
