"""A program that trains on several processes, each of which writes down the rows that its model got.

Usage: recount.py TRAINER ROWS VALID PLACE STEPS. The loaders are made first, before any process knows its rank where
its launcher does not say it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import torch

from packtool.torch import Loader, ValidationLoader

FIELDS = ("input_ids", "labels")


class Model(torch.nn.Module):
    """Notes the rows it gets, with a loss as models of `transformers` return it."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(()))
        self.seen: dict[str, list[list[list[int]]]] = {"train": [], "validate": []}

    def forward(self, input_ids: Any, labels: Any) -> Any:
        self.seen["train" if self.training else "validate"].append(input_ids.tolist())
        return {"loss": self.weight * (1 + labels.float().mean())}


def ddp(model: Model, train: Loader, valid: ValidationLoader, place: Path, steps: int) -> int:
    """A loop of one's own, which validates after every other step."""
    torch.distributed.init_process_group("gloo")
    parallel = torch.nn.parallel.DistributedDataParallel(model)
    for step, batch in zip(range(1, steps + 1), _on_and_on(train), strict=False):
        parallel(**batch)["loss"].backward()
        if step % 2 == 0:
            parallel.eval()
            with torch.no_grad():
                for other in valid:
                    model(**other)
            parallel.train()
    if torch.distributed.get_rank() == 0:
        torch.save(train.state_dict(), place / "loader.pt")
    return int(torch.distributed.get_rank())


def _on_and_on(train: Loader) -> Any:
    while True:
        yield from train


def transformers(model: Model, train: Loader, valid: ValidationLoader, place: Path, steps: int) -> int:
    from transformers import Trainer, TrainerCallback, TrainingArguments

    class Packed(Trainer):
        def get_train_dataloader(self) -> Any:
            return train

        def get_eval_dataloader(self, *_: Any) -> Any:
            return valid

    class SavePlace(TrainerCallback):
        def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if state.is_world_process_zero:
                torch.save(train.state_dict(), place / "loader.pt")

    arguments = TrainingArguments(
        str(place / "llama"), max_steps=steps, save_steps=steps, eval_strategy="steps", eval_steps=2, use_cpu=True,
        ignore_data_skip=True, report_to="none", disable_tqdm=True, ddp_backend="gloo",
    )  # fmt: skip
    Packed(model=model, args=arguments, callbacks=[SavePlace()], eval_dataset=valid).train()
    return int(arguments.process_index)


def lightning(model: Model, train: Loader, valid: ValidationLoader, place: Path, steps: int) -> int:
    """Lightning starts the other process itself, with this program from its first line."""
    from lightning.pytorch import LightningModule, Trainer

    class Module(LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def training_step(self, batch: Any, _: int) -> Any:
            return self.model(**batch)["loss"]

        def validation_step(self, batch: Any, _: int) -> None:
            self.model(**batch)

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=1e-3)

    quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False, "num_sanity_val_steps": 0}
    trainer = Trainer(
        max_steps=steps, val_check_interval=2, accelerator="cpu", devices=2, strategy="ddp",
        use_distributed_sampler=False, enable_checkpointing=False, default_root_dir=place, **quiet,
    )  # fmt: skip
    trainer.fit(Module(), train, valid)
    if trainer.global_rank == 0:
        torch.save(train.state_dict(), place / "loader.pt")
    return int(trainer.global_rank)


def main() -> None:
    trainer, rows, stored, place, steps = sys.argv[1:]
    torch.set_num_threads(1)
    train = Loader(rows, batch_size=16, fields=FIELDS)
    valid = ValidationLoader(stored, batch_size=16, batches=2, fields=FIELDS)
    model = Model()
    rank = {"ddp": ddp, "transformers": transformers, "lightning": lightning}[trainer](
        model, train, valid, Path(place), int(steps)
    )
    (Path(place) / f"rank-{rank}.json").write_text(json.dumps(model.seen))


if __name__ == "__main__":
    main()
