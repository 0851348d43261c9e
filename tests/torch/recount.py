"""A program that trains on two processes, stops, and goes on: each notes the rows that its model got, in three runs.

Usage: recount.py TRAINER ROWS PLACE. ROWS is a dataset, or a blend in its directory, which is one pass. The loader is
made before anything else, when no process knows its rank where its launcher does not say it. The first run stops in the
third epoch, or far into a blend; the second goes on from there to its end, and the third, from the same place, with
another batch size. All validate in between.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import distributed

from packtool.torch import Loader, ValidationLoader

FIELDS = ("input_ids", "labels")
STEPS, BATCH, OTHER = 14, 16, 32
EPOCHS, LENGTH = 3, 64


class Part(NamedTuple):
    """One run.

    Attributes:
        model: notes what it gets.
        loader: of the rows to train on.
        stops: after `STEPS`; else it goes on from there to the end.
        rows: path of the rows, or of a blend.
        place: where checkpoints are.
    """

    model: Model
    loader: Loader
    stops: bool
    rows: str
    place: Path

    @property
    def epochs(self) -> int:
        """A blend says itself how often rows come."""
        return 1 if self.rows.endswith(".toml") else EPOCHS

    def valid(self) -> ValidationLoader:
        rows = Path(self.rows).with_name("rows")
        return ValidationLoader(rows, batch_size=BATCH, batches=2, fields=FIELDS, labels=self.loader.labels)

    def steps(self) -> Iterator[int]:
        return iter(range(1, STEPS + 1)) if self.stops else count(STEPS + 1)


class Model(torch.nn.Module):
    """Notes the rows it gets, with a loss as models of `transformers` return it."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(()))
        self.seen: dict[str, list[list[list[int]]]] = {"train": [], "validate": []}

    def forward(self, input_ids: Any, labels: Any) -> Any:
        self.seen["train" if self.training else "validate"].append(input_ids.tolist())
        return {"loss": self.weight * (1 + labels.float().mean())}


def validate(model: Model, batches: Any) -> None:
    model.eval()
    with torch.no_grad():
        for batch in batches:
            model(**batch)
    model.train()


def ddp(part: Part) -> Any:
    """A loop of one's own, under torchrun or srun."""
    if not distributed.is_initialized():
        named = {} if "RANK" in os.environ else {"rank": "SLURM_PROCID", "world_size": "SLURM_NTASKS"}
        distributed.init_process_group("gloo", **{name: int(os.environ[each]) for name, each in named.items()})
    parallel = torch.nn.parallel.DistributedDataParallel(part.model)
    if not part.stops:
        part.loader.load_state_dict(torch.load(part.place / "loader.pt"))
    valid = part.valid()
    for step, batch in zip(part.steps(), part.loader, strict=False):
        parallel(**batch)["loss"].backward()
        if step % 2 == 0:
            validate(part.model, valid)
    if part.stops and distributed.get_rank() == 0:
        torch.save(part.loader.state_dict(), part.place / "loader.pt")
    distributed.barrier()
    return part.loader


def accelerate(part: Part) -> Any:
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True)
    model, loader = accelerator.prepare(part.model, part.loader)
    accelerator.register_for_checkpointing(loader)
    if not part.stops:
        accelerator.load_state(part.place / "accelerate")
    valid = accelerator.prepare(part.valid())
    for step, batch in zip(part.steps(), loader, strict=False):
        accelerator.backward(model(**batch)["loss"])
        if step % 2 == 0:
            validate(part.model, valid)
    if part.stops:
        accelerator.save_state(part.place / "accelerate")
    accelerator.wait_for_everyone()
    return part.loader


def transformers(part: Part) -> Any:
    from transformers import TrainingArguments

    from packtool.torch.transformers import PLACE, PackedTrainer

    last, checkpoint = STEPS, part.place / f"checkpoint-{STEPS}"
    if not part.stops:
        part.loader.load_state_dict(json.loads((checkpoint / PLACE).read_text()))
        last += part.loader.remaining
    arguments = TrainingArguments(
        str(part.place), max_steps=last, save_steps=STEPS, save_strategy="steps" if part.stops else "no",
        eval_strategy="steps", eval_steps=2, use_cpu=True, report_to="none", disable_tqdm=True, ddp_backend="gloo",
    )  # fmt: skip
    trainer = PackedTrainer(part.loader, model=part.model, args=arguments, eval_dataset=part.valid())
    trainer.train(resume_from_checkpoint=None if part.stops else str(checkpoint))
    return part.loader


def lightning(part: Part) -> Any:
    """Lightning starts the other process itself, with this program from its first line."""
    from lightning.pytorch import LightningModule, Trainer
    from lightning.pytorch.callbacks import ModelCheckpoint

    from packtool.torch.lightning import CountBatches

    class Module(LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.model = part.model

        def training_step(self, batch: Any, _: int) -> Any:
            return self.model(**batch)["loss"]

        def validation_step(self, batch: Any, _: int) -> None:
            self.model(**batch)

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=1e-3)

    save = ModelCheckpoint(dirpath=part.place, every_n_train_steps=STEPS, filename="lightning")
    quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False, "num_sanity_val_steps": 0}
    trainer = Trainer(
        max_steps=STEPS if part.stops else -1, max_epochs=part.epochs, val_check_interval=2, accelerator="cpu",
        devices=2, strategy="ddp", use_distributed_sampler=False, enable_checkpointing=part.stops,
        default_root_dir=part.place, callbacks=[save] if part.stops else [CountBatches()], **quiet,
    )  # fmt: skip
    saved = None if part.stops else part.place / "lightning.ckpt"
    trainer.fit(Module(), part.loader, part.valid(), ckpt_path=saved)
    return part.loader


def torchtitan(part: Part) -> Any:
    """The calls of its main branch, which knows the rank before it makes a loader; its model takes flat batches."""
    from torch.distributed import checkpoint
    from torchtitan_main import PackedDataLoader  # of examples/train

    if not distributed.is_initialized():
        distributed.init_process_group("gloo")
    world_size = distributed.get_world_size()

    def build(config: Any, batch_size: int) -> Any:
        return config.build(
            dp_rank=distributed.get_rank(),
            dp_world_size=world_size,
            tokenizer=None,
            max_context_length=LENGTH - 1,
            num_tokens_per_microbatch=batch_size // world_size * (LENGTH - 1),
        )

    def forward(batch: Any) -> None:
        part.model(*(each.unflatten(0, (-1, LENGTH - 1)) for each in (batch.input, batch.labels)))

    config = PackedDataLoader.Config(path=part.rows, epochs=part.epochs)
    loader = build(config, part.loader.sampler.batch_size)
    if not part.stops:
        checkpoint.load({"dataloader": loader}, checkpoint_id=part.place / "titan")
    for step, batch in zip(part.steps(), loader, strict=False):
        forward(batch)
        if step % 2 == 0:
            valid = build(replace(config, repeat=True), BATCH)
            part.model.eval()
            for _, other in zip(range(2), valid, strict=False):
                forward(other)
            part.model.train()
            valid.close()
    if part.stops:
        checkpoint.save({"dataloader": loader}, checkpoint_id=part.place / "titan")
    return loader


TRAINERS: dict[str, Callable[[Part], Any]] = {
    each.__name__: each for each in (ddp, accelerate, transformers, lightning, torchtitan)
}
"""What trains, and returns the loader that it trained with."""


def main() -> None:
    trainer, rows, place = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    torch.set_num_threads(1)
    options: dict[str, Any] = {"fields": FIELDS, "num_workers": 2 if "SLURM_PROCID" in os.environ else 0}
    if trainer == "transformers":
        options["labels"] = "same"
    if trainer != "lightning" and not rows.endswith(".toml"):  # Lightning begins a pass for each epoch
        options["epochs"] = EPOCHS
    seen = []
    for stops, size in ((True, BATCH), (False, BATCH), (False, OTHER)):
        part = Part(Model(), Loader(rows, batch_size=size, **options), stops, rows, place)
        loader = TRAINERS[trainer](part)
        if stops and distributed.get_rank() == 0:
            torch.save(loader.state_dict(), place / "state.pt")
        seen.append(part.model.seen)
    (place / f"rank-{distributed.get_rank()}.json").write_text(json.dumps(seen))
    distributed.barrier()  # nobody ends while others still talk to it
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
