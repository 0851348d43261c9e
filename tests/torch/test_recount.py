"""Every row reaches the model once an epoch, in its place: recounted in the model, whatever trainer it is in.

Two processes train until the third epoch, or into the second stage of a blend, with validations in between. Then they
go on to its end, with the same batch size and with another; and a loader alone goes on in one process. Rows are
compared as they are, one by one.
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
from tests.test_docs import ROOT

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]
torch = pytest.importorskip("torch")

from packtool.torch import Loader  # noqa: E402
from tests.torch.recount import BATCH, EPOCHS, FIELDS, LENGTH, OTHER, STEPS  # noqa: E402

LENGTHS = np.random.default_rng(3).integers(1, 60, 200).tolist()
BLEND = """
rows = 290

[sources]
rows = "rows"
other = "other"

[[stages]]
weights = { rows = 0.8, other = 0.2 }

[[stages]]
from = "120 rows"
ramp = true
weights = { rows = 0.3, other = 0.7 }
"""
Rows = list[list[int]]


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("recount")
    write_store(place / "store", LENGTHS)
    packtool.pack(place / "store", place / "rows", strategy="bfd", sequence_length=LENGTH)
    write_store(place / "other-store", LENGTHS[:70], first=1000)
    packtool.pack(place / "other-store", place / "other", strategy="concat", sequence_length=LENGTH)
    (place / "blend.toml").write_text(BLEND)
    return place / "rows"


def run(trainer: str, rows: Path, place: Path, environments: list[dict[str, str]]) -> list[list[dict[str, list[Rows]]]]:
    """Run the program in several processes; return for each of its runs what each rank's model got, batch by batch."""
    here = ROOT / "tests" / "torch"
    surrounding = {name: value for name, value in os.environ.items() if name not in ("RANK", "WORLD_SIZE")}
    surrounding |= {
        "PYTHONPATH": os.pathsep.join(map(str, (ROOT, here / "titan", ROOT / "examples" / "train"))),
        "OMP_NUM_THREADS": "1",
    }
    processes = [
        subprocess.Popen(
            [sys.executable, str(here / "recount.py"), trainer, str(rows), str(place)],
            env={**surrounding, **environment},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        for environment in environments
    ]
    errors = [process.communicate(timeout=300)[1] for process in processes]
    assert [process.returncode for process in processes] == [0] * len(processes), b"".join(errors)[-3000:].decode()
    ranks = [json.loads((place / f"rank-{rank}.json").read_text()) for rank in range(2)]
    return [list(runs) for runs in zip(*ranks, strict=True)]


def launched_by(launcher: str) -> list[dict[str, str]]:
    """The environments that a launcher gives to two processes."""
    if launcher == "lightning":  # starts the other process itself
        return [{}]
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        both = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(one.getsockname()[1])}
    if launcher == "srun":  # whose names packtool does not know: a loader that is made now is rank 0 of 1
        return [{**both, "SLURM_NTASKS": "2", "SLURM_PROCID": rank} for rank in ("0", "1")]
    both |= {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"}
    return [{**both, "RANK": rank, "LOCAL_RANK": rank} for rank in ("0", "1")]


def in_order(ranks: list[list[Rows]]) -> Rows:
    """The rows of all steps in global order: row i of a step is on rank i % ranks."""
    assert len({len(steps) for steps in ranks}) == 1
    return [row for shares in zip(*ranks, strict=True) for turn in zip(*shares, strict=True) for row in turn]


TRAINERS = [
    ("ddp", "srun"),
    ("ddp", "torchrun"),
    ("accelerate", "torchrun"),
    ("transformers", "torchrun"),
    ("lightning", "lightning"),
    ("torchtitan", "torchrun"),
]
"""What trains, and what starts its processes. Names of torchrun are given to the others, too."""
QUICK = [("blend.toml", "ddp", "srun"), *(("rows", *each) for each in TRAINERS if each != ("ddp", "torchrun"))]


@pytest.mark.parametrize(
    ("source", "trainer", "launcher"),
    [
        pytest.param(source, *each, marks=() if (source, *each) in QUICK else pytest.mark.slow)
        for source in ("rows", "blend.toml")
        for each in TRAINERS
    ],
)
def test_stopped_and_resumed(rows: Path, tmp_path: Path, source: str, trainer: str, launcher: str) -> None:
    if trainer in ("accelerate", "transformers", "lightning"):
        pytest.importorskip(trainer)
    given = rows.with_name(source)
    whole, same, other = run(trainer, given, tmp_path, launched_by(launcher))
    epochs = epochs_of(given)
    if trainer == "lightning":  # each epoch is a pass, and leaves out what fills no batch
        epochs[:-1] = [epoch[: len(epoch) // BATCH * BATCH] for epoch in epochs[:-1]]
    expected = [row for epoch in epochs for row in epoch]
    trained, rest = expected[: STEPS * BATCH], expected[STEPS * BATCH :]
    assert len(expected) - len(epochs[-1]) < len(trained) < len(expected)
    width = LENGTH - (trainer == "torchtitan")  # whose rows have a token more than its model reads
    valid = epochs[0] if trainer == "torchtitan" else packtool.open(rows)[: 2 * BATCH].tolist()
    for ranks, wanted, size in ((whole, trained, BATCH), (same, rest, BATCH), (other, rest, OTHER)):
        found = in_order([rank["train"] for rank in ranks])
        assert found == [row[:width] for row in wanted[: len(wanted) // size * size]]
        validated = in_order([rank["validate"] for rank in ranks])
        assert validated
        assert validated == [row[:width] for row in valid[: 2 * BATCH]] * (len(validated) // (2 * BATCH))
    options = {} if len(epochs) == 1 or trainer == "lightning" else {"epochs": EPOCHS}
    for size in (BATCH, BATCH // 2, 1):
        alone = Loader(given, batch_size=size, fields=FIELDS, **options)
        alone.load_state_dict(torch.load(tmp_path / "state.pt"))
        went_on = [row for batch in alone for row in batch["input_ids"].tolist()]
        assert went_on == rest[: len(rest) // size * size]


def epochs_of(path: Path) -> list[Rows]:
    """The rows of each epoch; a blend is one."""
    dataset = packtool.open(path)
    if path.suffix == ".toml":
        return [dataset[:].tolist()]
    return [dataset.epoch(number)[:].tolist() for number in range(EPOCHS)]  # type: ignore[union-attr]
