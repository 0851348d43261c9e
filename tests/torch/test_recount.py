"""Every row reaches the model once an epoch, in its place: recounted in the model, whatever trainer it is in.

Two processes train until the third epoch, or into the second stage of a blend, with validations in between. Then they
go on to its end, with the same batch size and with another; and a loader alone goes on in one process. Rows are
compared as they are, one by one.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import packtool
from tests.making import Make, drawn_lengths
from tests.test_docs import ROOT

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]
torch = pytest.importorskip("torch")

from packtool.torch import Loader  # noqa: E402
from tests.torch.processes import launched_by, run_together  # noqa: E402
from tests.torch.recount import BATCH, EPOCHS, FIELDS, LENGTH, OTHER, STEPS  # noqa: E402

LENGTHS = drawn_lengths(200, 59, 3, 1)
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


@pytest.fixture
def given(make: Make, tmp_path: Path) -> Path:
    """A directory with rows, others, and a blend of both."""
    make(LENGTHS, at=tmp_path, rows={"strategy": "bfd", "sequence_length": LENGTH})
    other = make(LENGTHS[:70], {"first": 1000}, other={"strategy": "concat", "sequence_length": LENGTH}) / "other"
    (tmp_path / "other").symlink_to(other)
    (tmp_path / "blend.toml").write_text(BLEND)
    return tmp_path


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
def test_stopped_and_resumed(given: Path, source: str, trainer: str, launcher: str) -> None:
    if trainer in ("accelerate", "transformers", "lightning"):
        pytest.importorskip(trainer)
    place = given / "seen"
    place.mkdir()
    environments = launched_by(launcher)
    program = ROOT / "tests" / "torch" / "recount.py"
    run_together(program, [(trainer, given / source, place)] * len(environments), environments)
    ranks = [json.loads((place / f"rank-{rank}.json").read_text()) for rank in range(2)]
    whole, same, other = ([rank[number] for rank in ranks] for number in range(3))
    epochs = epochs_of(given / source)
    if trainer == "lightning":  # each epoch is a pass, and leaves out what fills no batch
        epochs[:-1] = [epoch[: len(epoch) // BATCH * BATCH] for epoch in epochs[:-1]]
    expected = [row for epoch in epochs for row in epoch]
    trained, rest = expected[: STEPS * BATCH], expected[STEPS * BATCH :]
    assert len(expected) - len(epochs[-1]) < len(trained) < len(expected)
    width = LENGTH - (trainer == "torchtitan")  # whose rows have a token more than its model reads
    valid = epochs[0] if trainer == "torchtitan" else packtool.open(given / "rows")[: 2 * BATCH].tolist()
    for ranks, wanted, size in ((whole, trained, BATCH), (same, rest, BATCH), (other, rest, OTHER)):
        found = in_order([rank["train"] for rank in ranks])
        assert found == [row[:width] for row in wanted[: len(wanted) // size * size]]
        validated = in_order([rank["validate"] for rank in ranks])
        assert validated
        assert validated == [row[:width] for row in valid[: 2 * BATCH]] * (len(validated) // (2 * BATCH))
    options = {} if len(epochs) == 1 or trainer == "lightning" else {"epochs": EPOCHS}
    for size in (BATCH, BATCH // 2, 1):
        alone = Loader(given / source, batch_size=size, fields=FIELDS, **options)
        alone.load_state_dict(torch.load(place / "state.pt"))
        went_on = [row for batch in alone for row in batch["input_ids"].tolist()]
        assert went_on == rest[: len(rest) // size * size]


def epochs_of(path: Path) -> list[Rows]:
    """The rows of each epoch; a blend is one."""
    dataset = packtool.open(path)
    if path.suffix == ".toml":
        return [dataset[:].tolist()]
    return [dataset.epoch(number)[:].tolist() for number in range(EPOCHS)]  # type: ignore[union-attr]
