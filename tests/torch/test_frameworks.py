"""Trainers take as many batches as there are, and ask for no more: each of their epochs is whole, in its own order."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import packtool
from tests.stores import write_store

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]
torch = pytest.importorskip("torch")

from packtool.torch import Loader  # noqa: E402

LENGTHS = np.random.default_rng(3).integers(1, 60, 200).tolist()


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("frameworks")
    write_store(place / "store", LENGTHS)
    packtool.pack(place / "store", place / "rows", strategy="bfd", sequence_length=64)
    return place / "rows"


def epoch(rows: Path, number: int, batches: int) -> list[list[int]]:
    """The first rows of an epoch."""
    found: list[list[int]] = packtool.open(rows).epoch(number)[: 16 * batches].tolist()  # type: ignore[union-attr]
    return found


def lightning_model(seen: dict[tuple[str, int], list[list[int]]]) -> Any:
    """A module that notes the rows of each epoch."""
    lightning = pytest.importorskip("lightning.pytorch")

    class Model(lightning.LightningModule):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.zeros(()))

        def training_step(self, batch: Any, _: int) -> Any:
            seen.setdefault(("train", self.current_epoch), []).extend(batch["input_ids"].tolist())
            return self.weight * batch["labels"].float().mean()

        def validation_step(self, batch: Any, _: int) -> None:
            seen.setdefault(("validate", self.current_epoch), []).extend(batch["input_ids"].tolist())

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=1e-3)

    return Model()


def lightning_trainer(place: Path, **options: Any) -> Any:
    lightning = pytest.importorskip("lightning.pytorch")
    quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False, "accelerator": "cpu"}
    return lightning.Trainer(default_root_dir=place, **quiet, **options)


def test_lightning_trains_and_validates_every_epoch(rows: Path, tmp_path: Path) -> None:
    seen: dict[tuple[str, int], list[list[int]]] = {}
    train, valid = Loader(rows, batch_size=16), Loader(rows, batch_size=16, shuffle=False, drop_last=False)
    trainer = lightning_trainer(tmp_path, max_epochs=4, num_sanity_val_steps=0)
    trainer.fit(lightning_model(seen), train, valid)
    for number in range(4):
        assert seen["train", number] == epoch(rows, number, len(train))
        assert seen["validate", number] == packtool.open(rows)[:].tolist()


def test_lightning_validates_all_rows_after_its_sanity_check(rows: Path, tmp_path: Path) -> None:
    seen: dict[tuple[str, int], list[list[int]]] = {}
    valid = Loader(rows, batch_size=16, shuffle=False)
    trainer = lightning_trainer(tmp_path, max_epochs=2, num_sanity_val_steps=2, limit_train_batches=3)
    trainer.fit(lightning_model(seen), Loader(rows, batch_size=16), valid)
    stored = packtool.open(rows)[: 16 * len(valid)].tolist()
    assert seen["validate", 0] == stored[:32] + stored
    assert seen["validate", 1] == stored
    assert [seen["train", number] for number in range(2)] == [epoch(rows, number, 3) for number in range(2)]


@pytest.mark.parametrize("steps", [3, 6, 8])
def test_lightning_resumes_from_its_checkpoint(rows: Path, tmp_path: Path, steps: int) -> None:
    lightning = pytest.importorskip("lightning.pytorch")
    whole: dict[tuple[str, int], list[list[int]]] = {}
    every = len(Loader(rows, batch_size=16))
    assert every == 6
    lightning_trainer(tmp_path, max_epochs=3, enable_checkpointing=False).fit(
        lightning_model(whole), Loader(rows, batch_size=16)
    )
    parts: dict[tuple[str, int], list[list[int]]] = {}
    save = lightning.callbacks.ModelCheckpoint(dirpath=tmp_path, every_n_train_steps=steps, filename="{step}")
    lightning_trainer(tmp_path, max_steps=steps, callbacks=[save]).fit(
        lightning_model(parts), Loader(rows, batch_size=16)
    )
    lightning_trainer(tmp_path, max_epochs=3, enable_checkpointing=False).fit(
        lightning_model(parts), Loader(rows, batch_size=16), ckpt_path=tmp_path / f"step={steps}.ckpt"
    )
    assert parts == whole


def transformers_trainer(
    loader: Loader, place: Path, seen: list[list[int]], *, valid: Any = None, validated: Any = None, **options: Any
) -> Any:
    """A trainer that notes the rows it trains on, and those it validates on."""
    transformers = pytest.importorskip("transformers")

    class Model(torch.nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.zeros(()))

        def forward(self, input_ids: Any, labels: Any) -> Any:
            (seen if self.training else validated).extend(input_ids.tolist())
            return {"loss": self.weight * labels.float().mean()}

    class Trainer(transformers.Trainer):  # type: ignore[misc,name-defined]
        def get_train_dataloader(self) -> Any:
            return loader

        def get_eval_dataloader(self, *_: Any) -> Any:
            return valid

    class SavePlace(transformers.TrainerCallback):  # type: ignore[misc,name-defined]
        def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            torch.save(loader.state_dict(), f"{args.output_dir}/checkpoint-{state.global_step}/loader.pt")

    arguments = transformers.TrainingArguments(
        str(place), report_to="none", disable_tqdm=True, use_cpu=True, ignore_data_skip=True, **options
    )
    return Trainer(model=Model(), args=arguments, callbacks=[SavePlace()], eval_dataset=valid)


@pytest.mark.parametrize("accumulated", [1, 4])
def test_transformers_trains_every_epoch(rows: Path, tmp_path: Path, accumulated: int) -> None:
    seen: list[list[int]] = []
    loader = Loader(rows, batch_size=16, fields=("input_ids", "labels"))
    options = {"num_train_epochs": 3, "gradient_accumulation_steps": accumulated, "save_strategy": "no"}
    transformers_trainer(loader, tmp_path, seen, **options).train()
    assert seen == [row for number in range(3) for row in epoch(rows, number, len(loader))]


@pytest.mark.parametrize("steps", [4, 6, 9])
def test_transformers_resumes_from_its_checkpoint(rows: Path, tmp_path: Path, steps: int) -> None:
    parts: list[list[int]] = []
    loaders = [Loader(rows, batch_size=16, fields=("input_ids", "labels")) for _ in range(2)]
    transformers_trainer(loaders[0], tmp_path, parts, max_steps=steps, save_steps=steps).train()
    loaders[1].load_state_dict(torch.load(tmp_path / f"checkpoint-{steps}" / "loader.pt"))
    with warnings.catch_warnings(action="ignore"):
        again = transformers_trainer(loaders[1], tmp_path, parts, max_steps=18, save_strategy="no")
        again.train(resume_from_checkpoint=str(tmp_path / f"checkpoint-{steps}"))
    assert parts == [row for number in range(3) for row in epoch(rows, number, len(loaders[0]))]
