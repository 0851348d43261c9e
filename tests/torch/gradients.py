"""A process of two that takes one step in two turns, as docs/training.md has it: it writes the gradient of that step.

Usage: gradients.py TRAINER ROWS OUT.pt
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import distributed
from torch.nn.functional import cross_entropy

from packtool.torch import Loader

BATCH, ROWS, TURNS = 8, 2, 2
FIELDS = ("input_ids", "labels", "global_targets")
VOCAB = 1 << 16


def plain() -> Any:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Embedding(VOCAB, 4), torch.nn.Linear(4, VOCAB))


def llama() -> Any:
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    size = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2}
    return LlamaForCausalLM(LlamaConfig(vocab_size=VOCAB, **size))


def loss_of(model: Any, batch: Any) -> Any:
    """The sum over targets."""
    logits = model(batch["input_ids"]).flatten(0, 1)
    return cross_entropy(logits, batch["labels"].flatten(), ignore_index=-100, reduction="sum")


def gradient_of(model: Any) -> Any:
    return torch.cat([each.grad.flatten() for each in model.parameters()])


def ddp(loader: Loader) -> Any:
    distributed.init_process_group("gloo")
    model = torch.nn.parallel.DistributedDataParallel(plain())
    consumed = loader.consumed
    for batch in loader:
        (loss_of(model, batch) * distributed.get_world_size() / batch["global_targets"]).backward()
        if loader.consumed > consumed:
            break
    return gradient_of(model)


def accelerate(loader: Loader) -> Any:
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=TURNS)
    model, loader = accelerator.prepare(plain(), loader)
    divided = accelerator.gradient_accumulation_steps * accelerator.num_processes
    for batch in loader:
        with accelerator.accumulate(model):
            accelerator.backward(loss_of(model, batch) * divided / batch["global_targets"])
            if accelerator.sync_gradients:
                break
    return gradient_of(model)


def transformers(_: Loader) -> Any:
    from transformers import Trainer, TrainerCallback, TrainingArguments

    fields = ("input_ids", "labels", "position_ids")
    loader = Loader(sys.argv[2], batch_size=BATCH, micro_batch_size=ROWS, labels="same", fields=fields)
    found = []

    class Keep(TrainerCallback):
        def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **given: Any) -> None:
            found.append(gradient_of(given["model"]))

    class Packed(Trainer):
        def get_train_dataloader(self) -> Any:
            return loader

    arguments = TrainingArguments(
        str(Path(sys.argv[3]).parent), max_steps=1, gradient_accumulation_steps=TURNS, max_grad_norm=0, use_cpu=True,
        save_strategy="no", report_to="none", disable_tqdm=True, ddp_backend="gloo",
    )  # fmt: skip
    Packed(model=llama(), args=arguments, callbacks=[Keep()]).train()
    return found[0]


def lightning(loader: Loader) -> Any:
    """Lightning starts the other process itself."""
    from lightning.pytorch import LightningModule, Trainer

    class Module(LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.layers = plain()
            self.found: Any = None

        def training_step(self, batch: Any, _: int) -> Any:
            divided = self.trainer.accumulate_grad_batches * self.trainer.world_size
            return loss_of(self.layers, batch) * divided / batch["global_targets"]

        def on_before_optimizer_step(self, _: Any) -> None:
            self.found = gradient_of(self.layers)

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=1e-3)

    module = Module()
    quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}
    trainer = Trainer(
        max_steps=1, accumulate_grad_batches=TURNS, accelerator="cpu", devices=2, strategy="ddp",
        use_distributed_sampler=False, enable_checkpointing=False, **quiet,
    )  # fmt: skip
    trainer.fit(module, loader)
    return module.found


TRAINERS: dict[str, Callable[[Loader], Any]] = {
    each.__name__: each for each in (ddp, accelerate, transformers, lightning)
}


def main() -> None:
    torch.set_num_threads(1)
    loader = Loader(sys.argv[2], batch_size=BATCH, micro_batch_size=ROWS, fields=FIELDS)
    gradient = TRAINERS[sys.argv[1]](loader)
    if distributed.get_rank() == 0:
        torch.save(gradient, Path(sys.argv[3]))
    distributed.barrier()
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
