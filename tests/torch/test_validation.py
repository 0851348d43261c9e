"""Every validation reads the same rows, in every trainer, whatever the one before it left."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import packtool
from packtool.errors import UsageError
from tests.stores import write_store

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]
torch = pytest.importorskip("torch")

from packtool.torch import Loader, ValidationLoader  # noqa: E402
from tests.torch.test_frameworks import lightning_model, lightning_trainer, transformers_trainer  # noqa: E402

LENGTHS = np.random.default_rng(3).integers(1, 60, 203).tolist()


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("validation")
    write_store(place / "store", LENGTHS)
    packtool.pack(place / "store", place / "rows", strategy="bfd", sequence_length=64)
    packtool.pack(place / "store", place / "buckets", strategy="buckets", buckets=(16, 32, 64))
    packtool.shuffle(place / "buckets", place / "batches", method="bucket", batch_tokens=256)
    return place / "rows"


def ids(batches: Any) -> list[list[int]]:
    return [row for batch in batches for row in batch["input_ids"].tolist()]


def test_a_whole_pass_each_time(rows: Path) -> None:
    valid = ValidationLoader(rows, batch_size=16)
    stored = packtool.open(rows)[:].tolist()
    assert len(stored) % 16
    assert ids(islice(valid, 3)) == stored[:48]
    for _ in range(2):
        assert ids(valid) == stored
    assert len(valid) == -(-len(stored) // 16)


def test_the_first_batches_each_time(rows: Path) -> None:
    valid = ValidationLoader(rows, batch_size=16, batches=3)
    stored = packtool.open(rows)[:48].tolist()
    for taken in (3, 1, 3):
        assert ids(islice(valid, taken)) == stored[: 16 * taken]
    assert ids(valid) == stored
    assert len(valid) == 3
    assert repr(valid).startswith("<packtool validation: 3 of 7 batches, <packtool loader: rank 0 of 1, ")


@pytest.mark.parametrize("micro", [None, 3])
def test_ranks_share_each_batch(rows: Path, micro: int | None) -> None:
    ranks = [
        ValidationLoader(rows, batch_size=16, rank=rank, world_size=2, micro_batch_size=micro) for rank in range(2)
    ]
    stored = packtool.open(rows)[:].tolist()
    for _ in range(2):
        assert sorted(row for rank in ranks for row in ids(rank)) == sorted(stored)
    assert len(ranks[0]) == len(ranks[1]) == len(list(ranks[1]))


def test_rows_of_several_lengths(rows: Path) -> None:
    valid = ValidationLoader(rows.parent / "batches", batches=5)
    first = [batch["input_ids"].tolist() for batch in valid]
    assert first == [batch.tolist() for batch in packtool.open(rows.parent / "batches")[:5]]
    assert [batch["input_ids"].tolist() for batch in valid] == first


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batches": 0}, "batches: 0 is not a number of batches"),
        ({"batches": True}, "batches: True is not a number of batches"),
        ({"batches": 8}, "batches: 8 batches, but all rows make 7"),
        ({"epochs": 2}, "epochs: a validation reads stored rows once, in stored order"),
        ({"shuffle": True}, "shuffle: a validation reads stored rows once, in stored order"),
        ({"batchsize": 1}, "batchsize: no such option"),
    ],
)
def test_options_that_make_no_validation(rows: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as error:
        ValidationLoader(rows, **{"batch_size": 16, **options})
    assert str(error.value).startswith(message)


@pytest.mark.parametrize("batches", [None, 3])
def test_lightning_validates_on_the_same_rows(rows: Path, tmp_path: Path, batches: int | None) -> None:
    seen: dict[tuple[str, int], list[list[int]]] = {}
    valid = ValidationLoader(rows, batch_size=16, batches=batches)
    trainer = lightning_trainer(tmp_path, max_epochs=3, limit_train_batches=2, num_sanity_val_steps=2)
    trainer.fit(lightning_model(seen), Loader(rows, batch_size=16), valid)
    stored = packtool.open(rows)[: 48 if batches else None].tolist()
    assert seen["validate", 0] == stored[:32] + stored
    assert seen["validate", 1] == seen["validate", 2] == stored


@pytest.mark.parametrize("batches", [None, 3])
def test_transformers_validates_on_the_same_rows(rows: Path, tmp_path: Path, batches: int | None) -> None:
    validated: list[list[int]] = []
    valid = ValidationLoader(rows, batch_size=16, batches=batches, fields=("input_ids", "labels"))
    options = {"max_steps": 6, "eval_strategy": "steps", "eval_steps": 2, "save_strategy": "no"}
    loader = Loader(rows, batch_size=16, fields=("input_ids", "labels"))
    trained: list[list[int]] = []
    transformers_trainer(loader, tmp_path, trained, valid=valid, validated=validated, **options).train()
    assert validated == 3 * packtool.open(rows)[: 48 if batches else None].tolist()
    assert trained == packtool.open(rows).epoch(0)[:96].tolist()
