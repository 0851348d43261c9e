"""Every row reaches the model once an epoch, in its place: recounted in the model, whatever trainer it is in.

Two processes train until the third epoch, with validations in between. Then one process goes on, with another batch
size. Rows are compared as they are, one by one.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import packtool
from tests.stores import write_store

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]
torch = pytest.importorskip("torch")

from packtool.torch import Loader  # noqa: E402
from tests.torch.recount import FIELDS  # noqa: E402

ROOT = Path(__file__).parents[2]
LENGTHS = np.random.default_rng(3).integers(1, 60, 200).tolist()
STEPS, BATCH, EVERY = 14, 16, 6  # steps of two processes, rows of a step, steps of an epoch
Rows = list[list[int]]


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("recount")
    write_store(place / "store", LENGTHS)
    packtool.pack(place / "store", place / "rows", strategy="bfd", sequence_length=64)
    return place / "rows"


def epochs(rows: Path, numbers: range) -> Rows:
    """The rows of some epochs that fill batches."""
    found: Rows = []
    for number in numbers:
        found += packtool.open(rows).epoch(number)[: EVERY * BATCH].tolist()  # type: ignore[union-attr]
    return found


def run(trainer: str, rows: Path, place: Path, environments: list[dict[str, str]]) -> list[dict[str, list[Rows]]]:
    """Run a program in several processes; return what each rank's model got, batch by batch."""
    command = [sys.executable, ROOT / "tests" / "torch" / "recount.py", trainer, rows, rows, place, STEPS]
    surrounding = {name: value for name, value in os.environ.items() if name not in ("RANK", "WORLD_SIZE")}
    processes = [
        subprocess.Popen(
            list(map(str, command)),
            env={**surrounding, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", **environment},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        for environment in environments
    ]
    errors = [process.communicate(timeout=300)[1] for process in processes]
    assert [process.returncode for process in processes] == [0] * len(processes), b"".join(errors)[-3000:].decode()
    return [json.loads((place / f"rank-{rank}.json").read_text()) for rank in range(2)]


def as_of_torchrun() -> list[dict[str, str]]:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = str(one.getsockname()[1])
    both = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "LOCAL_WORLD_SIZE": "2"}
    return [{**both, "RANK": rank, "LOCAL_RANK": rank} for rank in ("0", "1")]


def in_order(ranks: list[list[Rows]]) -> Rows:
    """The rows of all steps in global order: row i of a step is on rank i % ranks."""
    assert len({len(steps) for steps in ranks}) == 1
    return [row for shares in zip(*ranks, strict=True) for turn in zip(*shares, strict=True) for row in turn]


@pytest.mark.parametrize("trainer", ["ddp", "transformers", "lightning"])
def test_two_processes_and_then_one(rows: Path, tmp_path: Path, trainer: str) -> None:
    if trainer != "ddp":
        pytest.importorskip(trainer)
    ranks = run(trainer, rows, tmp_path, [{}] if trainer == "lightning" else as_of_torchrun())
    trained = in_order([rank["train"] for rank in ranks])
    assert trained == epochs(rows, range(3))[: STEPS * BATCH]
    assert in_order([rank["validate"] for rank in ranks]) == packtool.open(rows)[: 2 * BATCH].tolist() * (STEPS // 2)
    for size in (BATCH, BATCH // 2, 1):
        rest = Loader(rows, batch_size=size, fields=FIELDS)
        rest.load_state_dict(torch.load(tmp_path / "loader.pt"))
        went_on = [row for batch in rest for row in batch["input_ids"].tolist()]
        whole = packtool.open(rows).epoch(2)[:].tolist()  # type: ignore[union-attr]
        assert went_on == whole[2 * BATCH : len(whole) // size * size]
