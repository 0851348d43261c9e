"""How a model scores what was held out: rows packed as its own, and whole documents, the same for all models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from measures import Floats
from torch import Tensor
from torch.nn.functional import cross_entropy

from packtool.formats.token_store import TokenStore
from packtool.torch import Loader

FIELDS = ("input_ids", "labels", "document_ids")
_AT_ONCE = 128  # windows


def losses(model: Any, batch: dict[str, Any], device: torch.device, *, masks: bool) -> tuple[Tensor, Tensor]:
    """The loss of each target, (rows, T - 1), and whether it is text; else it is padding.

    Args:
        masks: attention stays within documents.
    """
    ids, labels = batch["input_ids"].to(device), batch["labels"].to(device)
    logits = model(ids, batch["document_ids"].to(device) if masks else None)[:, :-1]
    each = cross_entropy(logits.flatten(0, 1).float(), ids[:, 1:].flatten(), reduction="none")
    return each.view(len(ids), -1), labels[:, :-1] != -100


@torch.no_grad()
def own_rows(model: Any, valid: Path, batch_tokens: int, device: torch.device, *, masks: bool) -> Floats:
    """Held-out rows that are packed as the run's own.

    Returns:
        (T - 1, 4), for each place in a row: summed loss over text, text targets, over padding, padding targets.
    """
    loader = Loader(valid, batch_tokens=batch_tokens, shuffle=False, drop_last=False, fields=FIELDS, documents=masks)
    found = np.zeros((0, 4))
    for batch in loader:
        each, text = losses(model, batch, device, masks=masks)
        here = torch.stack([(each * text).sum(0), text.sum(0), (each * ~text).sum(0), (~text).sum(0)], dim=1)
        longer = max(len(found), len(here))
        found = np.pad(found, ((0, longer - len(found)), (0, 0)))
        found[: len(here)] += here.double().cpu().numpy()
    return found


class SameText:
    """Held-out documents as windows, for a model to score as it is trained.

    A document is read in windows, half a window apart; each token counts in the first window that holds it, so it has
    half a window of context or all that there is.

    Args:
        texts: token store of the documents.
        context: tokens in a window.
        every: only one window in so many is scored.
    """

    def __init__(self, texts: Path, context: int, every: int = 1) -> None:
        ids, counted = windows(texts, context)
        self._ids, self._counted = torch.from_numpy(ids[::every]), torch.from_numpy(counted[::every])

    @torch.no_grad()
    def score(self, model: Any, device: torch.device) -> Floats:
        """(T - 1, 2), for each place in a window: summed loss and targets."""
        found = np.zeros((self._ids.shape[1] - 1, 2))
        for first in range(0, len(self._ids), _AT_ONCE):
            ids = self._ids[first : first + _AT_ONCE].to(device)
            mask = self._counted[first : first + _AT_ONCE, 1:].to(device)
            each = cross_entropy(model(ids)[:, :-1].flatten(0, 1), ids[:, 1:].flatten(), reduction="none")
            here = torch.stack([(each.view(mask.shape) * mask).sum(0), mask.sum(0)], dim=1)
            found += here.double().cpu().numpy()
        return found


def windows(texts: Path, length: int) -> tuple[Any, Any]:
    """Windows over the documents of a token store, (windows, length) ids, and which of them are scored in each."""
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
