"""One run: a model trained on one packed dataset, and measured on rows packed the same way and on whole documents.

It saves its state now and then, and goes on from it. Equal options and seeds give equal figures on one machine.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from measures import Floats, perplexity
from model import GPT
from torch import Tensor
from torch.nn.functional import cross_entropy

import packtool
from packtool.torch import Loader

SAVE_SECONDS = 60


@dataclass(frozen=True)
class Run:
    """What is trained.

    Attributes:
        name: of the run, and of its files.
        data: packed dataset.
        valid: packed the same way, from held-out documents.
        batch_tokens: in a batch.
        epochs: of the data.
        seed: of the model and of the order of rows; that of the first epoch is the dataset's.
        masks: attention stays within documents.
        on_padding: padding tokens are targets, too.
        shuffle: rows in the order of each epoch; else as they lie.
        most_steps: to compare runs of equal length; None for all epochs.
        half_padded: the second half of every row is padding, in place of its text: a control.
    """

    name: str
    data: Path
    valid: Path
    batch_tokens: int
    epochs: int
    seed: int
    masks: bool = False
    on_padding: bool = False
    shuffle: bool = True
    most_steps: int | None = None
    half_padded: bool = False


@dataclass(frozen=True)
class Size:
    """Of the model, and how it is trained."""

    width: int = 48
    layers: int = 1
    heads: int = 4
    learning_rate: float = 3e-3
    warmup: float = 0.05


def train(run: Run, size: Size, texts: Path, folder: Path) -> dict[str, Any]:
    """Train until the end of the run; return its steps and what was measured then.

    Args:
        texts: token store of the held-out documents, the same for all runs.
        folder: for its state.
    """
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(run.seed)
    torch.use_deterministic_algorithms(True, warn_only=True)
    dataset = packtool.open(run.data)
    model = GPT(dataset.manifest.tokenizer.vocab_size, size.width, size.layers, size.heads).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=size.learning_rate, weight_decay=0.1, betas=(0.9, 0.95))
    forward = torch.compile(model) if device.type == "cuda" else model
    seed = dataset.manifest.seed + run.seed
    loader = Loader(
        run.data,
        batch_tokens=run.batch_tokens,
        epochs=run.epochs,
        seed=seed,
        shuffle=run.shuffle,
        fields=("input_ids", "labels", "document_ids"),
        documents=run.masks,
    )
    total = len(loader) if run.most_steps is None else min(len(loader), run.most_steps)
    steps: list[tuple[float, ...]] = []
    checkpoint = folder / f"{run.name}.pt"
    if checkpoint.exists():
        state = torch.load(checkpoint, map_location=device)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        loader.load_state_dict(state["loader"])
        steps = state["steps"]
    saved = time.monotonic()
    for batch in loader:
        if run.half_padded:
            half = batch["labels"].shape[1] // 2
            batch["input_ids"][:, half:], batch["labels"][:, half - 1 :] = dataset.pad_id, -100
        for group in optimizer.param_groups:
            group["lr"] = size.learning_rate * _pace((len(steps) + 1) / total, size.warmup)
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            text, padding = losses(forward, batch, device, masks=run.masks)
        loss = text[0] + padding[0] if run.on_padding else text[0]
        targets = text[1] + padding[1] if run.on_padding else text[1]
        (loss / targets.clamp(min=1)).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        progress = (len(steps) + 1) / total * (run.epochs if run.most_steps is None else 1)
        steps.append((progress, *(float(each.detach()) for each in (*text, *padding))))
        if len(steps) == total:
            break
        if time.monotonic() - saved > SAVE_SECONDS:
            _save(checkpoint, model, optimizer, loader, steps)
            saved = time.monotonic()
    model.eval()
    own = validate(model, run, device)
    checkpoint.unlink(missing_ok=True)
    return {
        "run": {**asdict(run), "data": run.data.name, "valid": run.valid.name},
        "steps": steps,
        "epochs": steps[-1][0],
        "own_rows": perplexity(own[:, 1], own[:, 2]),
        "own_rows_counted": perplexity(own[:, 1] + own[:, 3], own[:, 2] + own[:, 4]),
        "same_text": same_text(model, texts, dataset, device),
        "tokens_per_step": float(np.mean([step[2] for step in steps])),
    }


def losses(
    model: Any, batch: dict[str, Any], device: torch.device, *, masks: bool
) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """Summed losses and numbers of targets: those of text, and those that are padding."""
    ids, labels = batch["input_ids"].to(device), batch["labels"].to(device)
    logits = model(ids, batch["document_ids"].to(device) if masks else None)[:, :-1]
    each = cross_entropy(logits.flatten(0, 1).float(), ids[:, 1:].flatten(), reduction="none")
    text = (labels[:, :-1] != -100).flatten()
    return ((each * text).sum(), text.sum()), ((each * ~text).sum(), (~text).sum())


@torch.no_grad()
def validate(model: GPT, run: Run, device: torch.device) -> Floats:
    """The steps of one pass over held-out rows that are packed as the run's own."""
    loader = Loader(
        run.valid,
        batch_tokens=run.batch_tokens,
        shuffle=False,
        drop_last=False,
        fields=("input_ids", "labels", "document_ids"),
        documents=run.masks,
    )
    found = []
    for batch in loader:
        text, padding = losses(model, batch, device, masks=run.masks)
        found.append((0.0, *(float(each) for each in (*text, *padding))))
    return np.array(found)


@torch.no_grad()
def same_text(model: GPT, texts: Path, trained_on: Any, device: torch.device) -> float:
    """The perplexity of held-out documents, each scored whole: the same tokens, whatever the run was trained on.

    A document is read in windows of the row length, half a window apart; each token counts in the first window that
    holds it, so it has half a window of context or all that there is.
    """
    length = max(getattr(trained_on, "buckets", {getattr(trained_on, "sequence_length", 0): None}))
    rows, counted = windows(texts, length)
    total = targets = 0.0
    for first in range(0, len(rows), 256):
        ids = torch.from_numpy(rows[first : first + 256]).to(device)
        mask = torch.from_numpy(counted[first : first + 256]).to(device)[:, 1:].flatten()
        each = cross_entropy(model(ids)[:, :-1].flatten(0, 1), ids[:, 1:].flatten(), reduction="none")
        total += float((each * mask).sum())
        targets += float(mask.sum())
    return float(np.exp(total / targets))


def windows(texts: Path, length: int) -> tuple[Any, Any]:
    """Windows over the documents of a token store, (windows, length) ids, and which of them are scored in each."""
    from packtool.storage.token_store import TokenStore

    store = TokenStore(texts)
    rows, counted = [], []
    for number in range(store.documents):
        document = np.asarray(store.document(number), np.int64)
        scored = 1  # nothing predicts the first token
        for start in range(0, max(1, len(document) - length // 2), length // 2):
            part = document[start : start + length]
            row, mask = np.full(length, store.manifest.tokenizer.eos_id, np.int64), np.zeros(length, np.bool_)
            row[: len(part)] = part
            mask[scored - start : len(part)] = True
            scored = max(scored, start + len(part))
            rows.append(row)
            counted.append(mask)
    return np.stack(rows), np.stack(counted)


def _pace(progress: float, warmup: float) -> float:
    """A linear warm-up, then a cosine to a tenth."""
    if progress < warmup:
        return progress / warmup
    return 0.1 + 0.45 * (1 + float(np.cos(np.pi * (progress - warmup) / (1 - warmup))))


def _save(path: Path, model: GPT, optimizer: Any, loader: Loader, steps: list[tuple[float, ...]]) -> None:
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "loader": loader.state_dict()}
    partial = path.with_suffix(".partial")
    torch.save({**state, "steps": steps}, partial)
    partial.replace(path)
