"""Trainers take as many batches as there are, and ask for no more: each of their epochs is whole, in its own order."""

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import packtool

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]
torch = pytest.importorskip("torch")

from packtool.errors import DataError, UsageError  # noqa: E402
from packtool.torch import Loader, NextLabels, ValidationLoader  # noqa: E402
from packtool.warnings import PacktoolWarning  # noqa: E402


def lightning_model(seen: dict[tuple[str, int], list[list[int]]]) -> Any:
    """A module that notes the rows of each epoch."""
    lightning = pytest.importorskip("lightning.pytorch")

    class Model(lightning.LightningModule):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.zeros(()))

        def training_step(self, batch: Any, _: int) -> Any:
            assert isinstance(batch, NextLabels)
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


@pytest.mark.parametrize(
    ("steps", "size", "told", "lost"),
    [
        *((steps, 16, False, 0) for steps in (3, 6, 8)),
        *((steps, size, True, 0) for steps, size in ((1, 32), (2, 32), (3, 32), (3, 24), (3, 8), (6, 32), (8, 48))),
        *((2, 32, False, 32), (3, 24, False, 24), (3, 8, False, 0)),
    ],
)
def test_lightning_resumes_with_any_batch_size(
    rows: Path, tmp_path: Path, steps: int, size: int, told: bool, lost: int
) -> None:
    """Lightning ends an epoch by the number of batches that it counted: why there is `CountBatches`.

    Without it, rows that would fill larger batches are not trained on.
    """
    lightning = pytest.importorskip("lightning.pytorch")
    from packtool.torch.lightning import CountBatches

    assert len(Loader(rows, batch_size=16)) == 6
    parts: dict[tuple[str, int], list[list[int]]] = {}
    save = lightning.callbacks.ModelCheckpoint(dirpath=tmp_path, every_n_train_steps=steps, filename="{step}")
    lightning_trainer(tmp_path, max_steps=steps, callbacks=[save]).fit(
        lightning_model(parts), Loader(rows, batch_size=16)
    )
    other, epochs = Loader(rows, batch_size=size), 3 if told or size == 16 else 1
    callbacks = [CountBatches()] if told else []
    trainer = lightning_trainer(tmp_path, max_epochs=epochs, enable_checkpointing=False, callbacks=callbacks)
    model = lightning_model(parts)
    if steps == 3:  # a loader that is made late, as one for a shared model is
        model.train_dataloader = lambda: other
    trainer.fit(model, None if steps == 3 else other, ckpt_path=tmp_path / f"step={steps}.ckpt")
    for number in range(epochs):
        had = max(0, min(steps - 6 * number, 6)) * 16
        whole = packtool.open(rows).epoch(number)  # type: ignore[union-attr]
        rest = 0 if had == 96 else (len(whole) - had) // size * size - lost
        assert parts["train", number] == whole[: had + rest].tolist()


def test_lightning_says_where_a_validation_is_trained_on(rows: Path, tmp_path: Path) -> None:
    pytest.importorskip("lightning.pytorch")
    from packtool.torch.lightning import CountBatches

    trainer = lightning_trainer(tmp_path, max_steps=1, enable_checkpointing=False, callbacks=[CountBatches()])
    with pytest.warns(PacktoolWarning, match="some of its documents are in .*, too, which is trained on"):
        trainer.fit(lightning_model({}), Loader(rows, batch_size=16), ValidationLoader(rows, batch_size=16))


def transformers_trainer(
    loader: Loader, place: Path, seen: list[list[int]], *, callbacks: Any = (), **options: Any
) -> Any:
    """A trainer that notes the rows it trains on."""
    transformers = pytest.importorskip("transformers")
    from packtool.torch.transformers import PackedTrainer

    class Model(torch.nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.zeros(()))

        def forward(self, input_ids: Any, labels: Any) -> Any:
            seen.extend(input_ids.tolist())
            return {"loss": self.weight * labels.float().mean()}

    given = {"report_to": "none", "disable_tqdm": True, "use_cpu": True, **options}
    arguments = transformers.TrainingArguments(str(place), **given)
    return PackedTrainer(loader, model=Model(), args=arguments, callbacks=list(callbacks))


def test_transformers_trains_every_epoch_in_steps_of_several_batches(rows: Path, tmp_path: Path) -> None:
    seen: list[list[int]] = []
    loader = Loader(rows, batch_size=16, labels="same", fields=("input_ids", "labels"))
    options = {"num_train_epochs": 3, "gradient_accumulation_steps": 4, "save_strategy": "no"}
    transformers_trainer(loader, tmp_path, seen, **options).train()
    whole = [packtool.open(rows).epoch(number)[: 16 * len(loader)] for number in range(3)]  # type: ignore[union-attr]
    assert seen == np.concatenate(whole).tolist()


@pytest.mark.parametrize(("steps", "size", "accumulated"), [(4, 32, 1), (8, 8, 1), (8, 48, 1), (9, 16, 2)])
def test_transformers_resumes_with_another_batch_size(
    rows: Path, tmp_path: Path, steps: int, size: int, accumulated: int
) -> None:
    """The Trainer counts epochs in its own batches, so it is told how many steps there are."""
    pytest.importorskip("transformers")
    from packtool.torch.transformers import PLACE

    parts: list[list[int]] = []
    first, other = (
        Loader(rows, batch_size=each, epochs=3, labels="same", fields=("input_ids", "labels")) for each in (16, size)
    )
    transformers_trainer(first, tmp_path, parts, max_steps=steps, save_steps=steps).train()
    other.load_state_dict(json.loads((tmp_path / f"checkpoint-{steps}" / PLACE).read_text()))
    left = other.remaining // accumulated
    options = {"max_steps": steps + left, "gradient_accumulation_steps": accumulated, "save_strategy": "no"}
    again = transformers_trainer(other, tmp_path, parts, **options)
    again.train(resume_from_checkpoint=str(tmp_path / f"checkpoint-{steps}"))
    whole = [row for number in range(3) for row in packtool.open(rows).epoch(number)[:].tolist()]  # type: ignore[union-attr]
    assert parts == whole[: 16 * steps + size * accumulated * left]
    assert len(whole) - len(parts) < size * accumulated


def test_transformers_is_told_what_it_lacks(rows: Path, tmp_path: Path) -> None:
    """A Trainer of one's own, and a checkpoint of another Trainer."""
    loader = Loader(rows, batch_size=16, labels="same", fields=("input_ids", "labels"))
    with pytest.raises(AttributeError, match=r"set ignore_data_skip=True in TrainingArguments"):
        loader.dataset  # noqa: B018
    trainer = transformers_trainer(loader, tmp_path, [], max_steps=4)
    (tmp_path / "checkpoint-2").mkdir()
    with pytest.raises(DataError, match=r"checkpoint-2: no place of a loader .*Resume from a checkpoint that PackedTr"):
        trainer.train(resume_from_checkpoint=True)
    with pytest.raises(ValueError, match="No valid checkpoint found"):
        transformers_trainer(loader, tmp_path / "none", [], max_steps=4).train(resume_from_checkpoint=True)


@pytest.mark.parametrize("writes", [True, False])
def test_one_process_writes_the_place(
    rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, writes: bool
) -> None:
    transformers = pytest.importorskip("transformers")
    from packtool.torch.transformers import PLACE

    loader = Loader(rows, batch_size=16, labels="same", fields=("input_ids", "labels"))
    trainer = transformers_trainer(loader, tmp_path, [], max_steps=4, save_strategy="no")
    (tmp_path / "checkpoint-3").mkdir(parents=True)
    monkeypatch.setattr(transformers.TrainingArguments, "should_save", writes)
    state = transformers.TrainerState(global_step=3)
    trainer.callback_handler.on_save(trainer.args, state, trainer.control)
    assert (tmp_path / "checkpoint-3" / PLACE).exists() == writes


@pytest.fixture
def blend(rows: Path) -> packtool.Blend:
    return packtool.Blend({"rows": rows, "other": rows.with_name("other")}, rows=160)


def test_lightning_ends_quietly_after_the_run_of_a_blend(blend: packtool.Blend, tmp_path: Path) -> None:
    """With its own thousand epochs, or with two; with more steps than there are it would go on for ever."""
    whole = [row for batch in Loader(blend, batch_size=16) for row in batch["input_ids"].tolist()]
    for options in ({}, {"max_epochs": 2}, {"max_epochs": 1}):
        seen: dict[tuple[str, int], list[list[int]]] = {}
        trainer = lightning_trainer(tmp_path, enable_checkpointing=False, **options)
        trainer.fit(lightning_model(seen), Loader(blend, batch_size=16))
        assert seen == {("train", 0): whole}
    trainer = lightning_trainer(tmp_path, enable_checkpointing=False, max_steps=11)
    with pytest.raises(UsageError, match="the run ended with its 160 rows"):
        trainer.fit(lightning_model({}), Loader(blend, batch_size=16))


@pytest.mark.parametrize("options", [{"num_train_epochs": 3}, {"max_steps": 25}, {"num_train_epochs": 1}])
def test_transformers_ends_quietly_after_the_run_of_a_blend(
    blend: packtool.Blend, tmp_path: Path, options: dict[str, int]
) -> None:
    loader = Loader(blend, batch_size=16, labels="same", fields=("input_ids", "labels"))
    seen: list[list[int]] = []
    transformers_trainer(loader, tmp_path, seen, **options, save_strategy="no").train()
    assert seen == [row for batch in Loader(blend, batch_size=16) for row in batch["input_ids"].tolist()]


def test_transformers_logs_the_loss_of_each_source(blend: packtool.Blend, tmp_path: Path) -> None:
    """Of batches of two sources, and of validation sets one after the other: means over the targets of each."""
    transformers = pytest.importorskip("transformers")
    from packtool.torch.transformers import PackedTrainer

    class Model(torch.nn.Module):  # type: ignore[misc,name-defined]
        """Its logits depend on the token before; as the learning rate is 0, they stay as they are."""

        def __init__(self) -> None:
            super().__init__()
            self.logits = torch.nn.Parameter(torch.randn(8, 65536, generator=torch.Generator().manual_seed(0)))

        def forward(self, input_ids: Any, labels: Any) -> Any:
            logits = self.logits[input_ids % 8]
            flat, targets = logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten()
            return {"loss": torch.nn.functional.cross_entropy(flat, targets, ignore_index=-100), "logits": logits}

    def expected(batches: Any, number: int) -> float:
        losses = []
        for batch in batches:
            mine = (batch["source"][:, 1:] == number) & (batch["labels"][:, 1:] != -100)
            logits = model.logits[batch["input_ids"] % 8][:, :-1][mine]
            losses.append(torch.nn.functional.cross_entropy(logits, batch["labels"][:, 1:][mine], reduction="none"))
        return float(torch.cat(losses).mean())

    model, fields = Model(), ("input_ids", "labels", "source")
    valid = ValidationLoader(blend, batch_size=4, batches=2, labels="same", fields=fields)
    arguments = transformers.TrainingArguments(
        str(tmp_path), max_steps=2, logging_steps=2, learning_rate=0, report_to="none", use_cpu=True, save_strategy="no"
    )
    loader = Loader(blend, batch_size=4, labels="same", fields=fields)
    trainer = PackedTrainer(loader, model=model, args=arguments, eval_dataset=valid)
    trainer.train()
    found = {**trainer.state.log_history[0], **trainer.evaluate()}
    for number, name in enumerate(loader.sources):
        first = list(itertools.islice(Loader(blend, batch_size=4, labels="same", fields=fields), 2))
        assert found[f"loss/{name}"] == pytest.approx(expected(first, number), abs=1e-4)
        assert found[f"eval_loss/{name}"] == pytest.approx(expected(valid, valid.sources.index(name)), abs=1e-4)
