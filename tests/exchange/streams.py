"""Stores to export, their tokens one after the other, and the rows of a dataset as a trainer reads them."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from tokenizers import Tokenizer
from tokenizers.models import WordLevel

import packtool
from packtool.formats.schema import TokenizerInfo
from packtool.formats.token_store import TokenStore
from tests.making import Make
from tests.stores import EOS, document_loss, write_store

LENGTHS = [5, 1, 9, 33, 2, 2, 64, 1, 100, 17, 3, 40, 8, 8, 1]
STORES = {"web": [5, 1, 9, 33, 2], "wiki": [2, 64, 1, 17], "code": [100, 3, 40, 8, 8, 1]}
PACKS: dict[str, dict[str, Any]] = {
    "joined": {"strategy": "bfd", "sequence_length": 32},
    "inserted": {"strategy": "padding", "sequence_length": 16},
    "repeated": {"strategy": "seamless", "sequence_length": 16},
    "masked": {"strategy": "padding", "sequence_length": 64, "atom_size": 16},
    "unbounded": {"strategy": "concat", "sequence_length": 32, "segments": False, "remainder": "drop"},
    "buckets": {"strategy": "buckets", "buckets": (8, 16, 32)},
    "batches": {"strategy": "buckets", "buckets": (8, 16, 32)},
    "whole-batches": {"strategy": "buckets", "buckets": (8, 16, 32)},
}
"""Of rows to export. Of those that are masked not all tokens train."""
REMAINDERS = {"batches": "pad", "whole-batches": "drop"}
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


def stores_of(make: Make, *, masked: bool = False) -> list[Path]:
    """Several stores to export together; if they are masked, all but the first say which of their tokens train."""
    made = []
    for number, (name, lengths) in enumerate(STORES.items()):
        stored = {"per_shard": 2, "first": 100 * number, "loss": document_loss if masked and number else None}
        made.append(make({name: lengths}, stored) / name)
    return made


def packed(make: Make, kind: str, place: Path) -> Path:
    """Rows, or batches of them, which are made in a directory."""
    stored = {"per_shard": 4, "loss": document_loss if kind == "masked" else None}
    rows = make(LENGTHS, stored, rows={**PACKS[kind], "shard_tokens": 128}) / "rows"
    if kind not in REMAINDERS:
        return rows
    options: dict[str, Any] = {"method": "bucket", "batch_tokens": 96, "remainder": REMAINDERS[kind]}
    return packtool.shuffle(rows, place / "batches", **options).path


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


class ReadRow(NamedTuple):
    """What a batch says of a row: positions, lengths of its documents and paddings, and which of its tokens train."""

    positions: list[int]
    pieces: list[int]
    trains: list[bool]


def rows_of_batches(path: Path) -> list[ReadRow]:
    """All rows of a dataset, as its batches say them."""
    dataset, rows = packtool.open(path), []
    for number in range(len(dataset)):
        loss = None
        if isinstance(dataset, packtool.reading.Dataset):
            batch, loss = dataset.batch([number]), dataset.loss([number])
        else:
            batch = dataset.batch(number)
        bounds, length = batch["cu_seqlens"], batch["input_ids"].shape[1]
        trains = batch["document_ids"] >= 0 if loss is None else loss == 1
        for row, positions in enumerate(batch["position_ids"].tolist()):
            mine = bounds[(bounds >= row * length) & (bounds <= (row + 1) * length)]
            rows.append(ReadRow(positions, np.diff(mine).tolist(), trains[row].tolist()))
    return rows
