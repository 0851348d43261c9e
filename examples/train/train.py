"""Train a small GPT from packed rows: on a CPU in minutes, or with torchrun on several processes.

    python examples/train/train.py packed --valid validation --masks --steps 300
    torchrun --standalone --nproc-per-node 2 examples/train/train.py packed --masks --checkpoint run.pt

With --checkpoint it saves its state at the end, and goes on from there if the file exists, on any number of processes.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from gpt import GPT
from torch import Tensor
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

import packtool
from packtool.torch import Loader, document_mask


def train(
    source: str | Path,
    *,
    steps: int = 300,
    batch_tokens: int = 4096,
    masks: bool = True,
    valid: str | Path | None = None,
    checkpoint: str | Path | None = None,
    learning_rate: float = 3e-3,
    epochs: int = 100,
    **size: int,
) -> list[float]:
    """Train until `steps`, and return the loss of each step that was taken: the mean over its targets, in nats.

    Args:
        source, valid: packed datasets, to train on and to measure the loss on at the end.
        batch_tokens: in a global batch, over all processes.
        masks: attention and positions within documents; else each row is read as one text.
        checkpoint: a file for the state.
        epochs: at most; each in an order of its own.
        size: of `GPT`.
    """
    torch.manual_seed(0)
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0"))) if torch.cuda.is_available() else "cpu"
    dataset = packtool.open(source)
    gpt = GPT(dataset.manifest.tokenizer.vocab_size, **size).to(device)
    model = DistributedDataParallel(gpt) if dist.is_initialized() else gpt
    optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate, weight_decay=0.1, betas=(0.9, 0.95))
    loader = Loader(source, epochs=epochs, documents=masks, **batch_size(dataset, batch_tokens))
    done = 0
    if checkpoint is not None and Path(checkpoint).exists():
        state = torch.load(checkpoint, map_location=device)
        gpt.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        loader.load_state_dict(state["loader"])
        done = state["step"]
    loader.set_epoch(0)  # the run is one pass: nothing is left to train after its last batch
    losses = []
    began, tokens = time.perf_counter(), 0
    for step, batch in zip(range(done + 1, steps + 1), loader, strict=False):
        loss, targets = losses_of(model, batch, masks, device)
        both = torch.stack([loss.detach(), targets])
        if dist.is_initialized():
            dist.all_reduce(both)
        # Gradients are averaged over processes, which may have different numbers of targets.
        (loss * (dist.get_world_size() if dist.is_initialized() else 1) / both[1]).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(float(both[0] / both[1]))
        tokens += batch["input_ids"].numel()
        if step % 20 == 0 or step == steps:
            say(f"step {step}: loss {losses[-1]:.3f}, {tokens / (time.perf_counter() - began):,.0f} tokens/s")
    if checkpoint is not None and first():
        state = {"model": gpt.state_dict(), "optimizer": optimizer.state_dict(), "loader": loader.state_dict()}
        torch.save({**state, "step": done + len(losses)}, checkpoint)
    if valid is not None:
        say(f"validation: loss {validate(gpt, valid, batch_tokens, masks, device):.3f}")
    return losses


@torch.no_grad()
def validate(gpt: GPT, source: str | Path, batch_tokens: int, masks: bool, device: Any) -> float:
    """The mean loss over every target of a dataset, each read once."""
    loader = Loader(
        source, shuffle=False, drop_last=False, documents=masks, **batch_size(packtool.open(source), batch_tokens)
    )
    both = torch.zeros(2, device=device)
    for batch in loader:
        both += torch.stack(losses_of(gpt, batch, masks, device))
    if dist.is_initialized():
        dist.all_reduce(both)
    return float(both[0] / both[1])


def losses_of(model: torch.nn.Module, batch: dict[str, Any], masks: bool, device: Any) -> tuple[Tensor, Tensor]:
    """The sum of the losses of a batch, and the number of its targets."""
    batch = {name: value.to(device) for name, value in batch.items() if isinstance(value, Tensor)}
    mask = document_mask(batch["document_ids"]) if masks else None
    logits = model(batch["input_ids"], batch["position_ids"], mask)
    loss = cross_entropy(logits.flatten(0, 1), batch["labels"].flatten(), ignore_index=-100, reduction="sum")
    return loss, (batch["labels"] != -100).sum().float()


def batch_size(dataset: Any, tokens: int) -> dict[str, int]:
    """What `Loader` is told: rows of a batch, or tokens, where rows have several lengths."""
    return (
        {"batch_tokens": tokens} if hasattr(dataset, "buckets") else {"batch_size": tokens // dataset.sequence_length}
    )


def first() -> bool:
    """Whether this process speaks and writes for all."""
    return not dist.is_initialized() or dist.get_rank() == 0


def say(what: str) -> None:
    if first():
        print(what, flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", help="a packed dataset")
    parser.add_argument("--valid", help="another, whose loss is measured at the end")
    parser.add_argument("--masks", action=argparse.BooleanOptionalAction, default=True, help="attention in documents")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--batch-tokens", type=int, default=4096)
    parser.add_argument("--learning-rate", type=float, default=3e-3)
    parser.add_argument("--epochs", type=int, default=100, help="at most")
    parser.add_argument("--checkpoint", help="a file for the state; if it exists, the run goes on from there")
    for name, value in {"width": 128, "layers": 4, "heads": 4}.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    arguments = parser.parse_args()
    if "RANK" in os.environ:
        dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    train(**vars(arguments))
    if dist.is_initialized():
        dist.destroy_process_group()
