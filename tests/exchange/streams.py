"""Stores to export, their tokens one after the other, and the rows of a dataset as a trainer reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer
from tokenizers.models import WordLevel

import packtool
from packtool.formats.schema import TokenizerInfo
from packtool.formats.token_store import TokenStore
from tests.stores import EOS, write_store

LENGTHS = [5, 1, 9, 33, 2, 2, 64, 1, 100, 17, 3, 40, 8, 8, 1]
LARGE = TokenizerInfo(sha256="1" * 64, vocab_size=1 << 17, eos_id=EOS, eos_token="<eos>", added_tokens={"<eos>": EOS})


def words(count: int, eos: int = EOS, text: str = "<eos>") -> Tokenizer:
    """A tokenizer of whole words with so many ids."""
    vocab = {f"t{number}": number for number in range(count) if number != eos}
    return Tokenizer(WordLevel(vocab | {text: eos}, unk_token="t1"))


def small_large_and_empty(place: Path) -> dict[str, Path]:
    """Stores of ids of 16 bits, of 32 bits, and of no documents."""
    return {
        "small": write_store(place / "small", LENGTHS, per_shard=4),
        "large": write_store(place / "large", LENGTHS, per_shard=4, tokenizer=LARGE),
        "empty": write_store(place / "empty", []),
    }


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
