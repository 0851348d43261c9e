"""The tokens of a store, one after the other; the rows of a dataset, as a trainer reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import packtool
from packtool.formats.token_store import TokenStore


def stream(store: Path) -> np.ndarray[Any, Any]:
    return np.concatenate([np.empty(0, np.int64), *(shard.astype(np.int64) for shard in TokenStore(store).shards)])


def rows_in_order(path: Path) -> list[np.ndarray[Any, Any]]:
    """All rows as the trainer's reader gives them: batch by batch, where there are batches; those in none come last."""
    dataset = packtool.open(path)
    if isinstance(dataset, packtool.reading.Dataset):
        return [*dataset]
    if dataset.batches is None:
        return [row for rows in dataset.buckets.values() for row in rows]
    inside: dict[int, set[int]] = {length: set() for length in dataset.buckets}
    for length, first, count in dataset.batches.tolist():
        inside[length] |= set(range(first, first + count))
    rest = [rows[n] for length, rows in dataset.buckets.items() for n in range(len(rows)) if n not in inside[length]]
    return [row for batch in dataset for row in batch] + rest
