"""One run: a model trained on one packed dataset, and scored on what was held out.

It saves its state now and then, and goes on from it. Equal options and seeds give equal figures on one machine.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from measures import perplexity
from model import GPT
from scoring import FIELDS, SameText, losses, own_rows

import packtool
from packtool.torch import Loader

SAVE_SECONDS = 60
POINTS = 12
"""Times that a run is scored on the same text while it trains."""
SAMPLE = 4
"""Then one window in so many."""


@dataclass(frozen=True)
class Run:
    """What is trained.

    Attributes:
        kind: runs of one kind differ in their seed alone.
        data: packed dataset.
        valid: packed the same way, from held-out documents.
        batch_tokens: in a batch.
        epochs: of the data; with `steps`, of the run that it is compared with.
        seed: of the model and of the order of rows; that of the first epoch is the dataset's.
        context: tokens of the windows in which the same text is scored.
        steps: to compare runs of equal length; None for all epochs.
        masks: attention stays within documents.
        on_padding: padding tokens are targets, too.
        shuffle: rows in the order of each epoch; else as they lie.
        repack: documents are packed anew for each epoch; of a dataset without tokens.
        half_padded: the second half of every row is padding, in place of its text: a control.
    """

    kind: str
    data: Path
    valid: Path
    batch_tokens: int
    epochs: int
    seed: int
    context: int
    steps: int | None = None
    masks: bool = False
    on_padding: bool = False
    shuffle: bool = True
    repack: bool = False
    half_padded: bool = False

    @property
    def name(self) -> str:
        """Of the run's files."""
        return f"{self.kind}-{self.seed}"

    def asked(self, size: Size) -> dict[str, Any]:
        """All that its figures depend on, beside the text."""
        return {**asdict(self), "data": self.data.name, "valid": self.valid.name, **asdict(size)}


@dataclass(frozen=True)
class Size:
    """Of the model, and how it is trained."""

    width: int = 48
    layers: int = 1
    heads: int = 4
    learning_rate: float = 1e-2
    warmup: float = 0.05


def train(
    run: Run,
    size: Size,
    texts: Path,
    folder: Path,
    *,
    save_seconds: float = SAVE_SECONDS,
    after_step: Callable[[int], None] = lambda _: None,
) -> dict[str, Any]:
    """Train until the end of the run; return its steps and how it scores.

    Args:
        texts: token store of the held-out documents, the same for all runs.
        folder: for its state.
        save_seconds: between times that it is saved.
        after_step: called with the number of steps so far.
    """
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(run.seed)
    torch.use_deterministic_algorithms(True, warn_only=True)
    dataset = packtool.open(run.data)
    model = GPT(dataset.manifest.tokenizer.vocab_size, size.width, size.layers, size.heads).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=size.learning_rate, weight_decay=0.1, betas=(0.9, 0.95))
    forward = torch.compile(model) if device.type == "cuda" else model
    loader = Loader(
        run.data,
        batch_tokens=run.batch_tokens,
        epochs=run.epochs,
        seed=dataset.manifest.seed + run.seed,
        shuffle=run.shuffle,
        repack=run.repack,
        fields=FIELDS,
        documents=run.masks,
    )
    total = run.steps or len(loader)
    points = {round(number * total / POINTS) for number in range(1, POINTS + 1)}
    sample = SameText(texts, run.context, SAMPLE)
    steps: list[tuple[float, ...]] = []
    curve: list[tuple[int, float]] = []
    checkpoint = folder / f"{run.name}.pt"
    if checkpoint.exists():
        state = torch.load(checkpoint, map_location=device)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        loader.load_state_dict(state["loader"])
        steps, curve = state["steps"], state["curve"]
    saved = time.monotonic()
    for batch in _endless(loader):
        if run.half_padded:
            half = batch["labels"].shape[1] // 2
            batch["input_ids"][:, half:], batch["labels"][:, half - 1 :] = dataset.pad_id, -100
        for group in optimizer.param_groups:
            group["lr"] = size.learning_rate * _pace((len(steps) + 1) / total, size.warmup)
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            each, text = losses(forward, batch, device, masks=run.masks)
        on_text, on_padding = (each * text).sum(), (each * ~text).sum()
        targets = each.numel() if run.on_padding else text.sum().clamp(min=1)
        ((on_text + on_padding if run.on_padding else on_text) / targets).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        sums = (on_text, text.sum(), on_padding, (~text).sum())
        steps.append(((len(steps) + 1) / total * run.epochs, *(float(value.detach()) for value in sums)))
        if len(steps) in points:
            curve.append((len(steps), perplexity(*sample.score(model, device).T)))
        if len(steps) == total:
            break
        if time.monotonic() - saved > save_seconds:
            state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "loader": loader.state_dict()}
            _save(checkpoint, {**state, "steps": steps, "curve": curve})
            saved = time.monotonic()
        after_step(len(steps))
    own = own_rows(model, run.valid, run.batch_tokens, device, masks=run.masks)
    same = SameText(texts, run.context).score(model, device)
    checkpoint.unlink(missing_ok=True)
    return {
        "asked": run.asked(size),
        "steps": steps,
        "curve": curve,
        "own_rows": own.tolist(),
        "same_text": same.tolist(),
    }


def _endless(loader: Loader) -> Iterator[dict[str, Any]]:
    while True:
        yield from loader


def _pace(progress: float, warmup: float) -> float:
    """A linear warm-up, then a cosine to a tenth."""
    if progress < warmup:
        return progress / warmup
    return 0.1 + 0.45 * (1 + float(np.cos(np.pi * (progress - warmup) / (1 - warmup))))


def _save(path: Path, state: dict[str, Any]) -> None:
    partial = path.with_suffix(".partial")
    torch.save(state, partial)
    partial.replace(path)
