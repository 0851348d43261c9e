"""Runs where PyTorch is: one reader over one dataset of rows, batch after batch, as a training process has them.

    PYTHON -m benchmarks.peers.load READER DATASET WORKERS SECONDS ROW_LENGTH

Prints the seconds from making the reader to its first batch, PyTorch and the reader's library being loaded, and then
tokens a second of wall time and of CPU time, that of its workers included. Batches of 8 rows, shuffled, as int64.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

BATCH = 8


def numpy(path: Path, workers: int, length: int) -> Iterator[Any]:
    """Rows in random order, gathered from the mapped shards, as int64."""
    shards = [np.load(file, mmap_mode="r") for file in sorted(path.glob("tokens-*.npy"))]
    first = np.cumsum([0, *map(len, shards)])
    order = np.random.default_rng(0).permutation(first[-1])
    for begin in range(0, len(order) - BATCH + 1, BATCH):
        rows = order[begin : begin + BATCH]
        out = np.empty((BATCH, length), np.int64)
        which = np.searchsorted(first, rows, side="right") - 1
        for shard in np.unique(which):
            mine = which == shard
            out[mine] = shards[shard][rows[mine] - first[shard]]
        yield out


def nanogpt(path: Path, workers: int, length: int) -> Iterator[Any]:
    """As `get_batch` of its train.py: random places of one memory map, inputs and targets."""
    import torch

    rng = np.random.default_rng(0)
    while True:
        data = np.memmap(path / "train.bin", dtype=np.uint16, mode="r")
        begins = rng.integers(0, len(data) - length, BATCH)
        x = torch.stack([torch.from_numpy(data[i : i + length].astype(np.int64)) for i in begins])
        y = torch.stack([torch.from_numpy(data[i + 1 : i + 1 + length].astype(np.int64)) for i in begins])
        yield x if len(y) else None


class _Ready:
    """Batches that take nothing to make: the same one, five tensors like those that packtool gives."""

    def __init__(self, length: int) -> None:
        import torch

        ids = torch.zeros(BATCH, length, dtype=torch.int64)
        self._batch = {name: ids.clone() for name in ("input_ids", "labels", "position_ids")}
        self._batch |= {"document_ids": ids.int(), "cu_seqlens": torch.arange(4 * BATCH, dtype=torch.int32)}

    def __len__(self) -> int:
        return 1 << 14

    def __getitem__(self, number: int) -> Any:
        return self._batch


def ready(path: Path, workers: int, length: int) -> Iterator[Any]:
    """PyTorch's `DataLoader` alone: it hands over batches that are made already."""
    from torch.utils.data import DataLoader

    rows: Any = _Ready(length)
    return (each["input_ids"] for each in DataLoader(rows, batch_size=None, num_workers=workers))


def packtool_ids(path: Path, workers: int, length: int) -> Iterator[Any]:
    """`packtool.torch.Loader` with inputs and labels, and attention across documents, as the others give."""
    from packtool.torch import Loader

    loader = Loader(path, batch_size=BATCH, num_workers=workers, documents=False, fields=("input_ids", "labels"))
    return (each["input_ids"] for each in loader)


def packtool_all(path: Path, workers: int, length: int) -> Iterator[Any]:
    """`packtool.torch.Loader` with all that it makes: labels, positions, document ids, cu_seqlens."""
    from packtool.torch import Loader

    return (each["input_ids"] for each in Loader(path, batch_size=BATCH, num_workers=workers))


def mosaicml(path: Path, workers: int, length: int) -> Iterator[Any]:
    """MosaicML Streaming."""
    import torch
    from streaming import StreamingDataset
    from torch.utils.data import DataLoader

    dataset = StreamingDataset(local=str(path), shuffle=True, batch_size=BATCH)

    def collate(samples: list[dict[str, Any]]) -> Any:
        return torch.from_numpy(np.stack([sample["tokens"] for sample in samples]).astype(np.int64))

    return iter(DataLoader(dataset, batch_size=BATCH, num_workers=workers, collate_fn=collate))


def litdata(path: Path, workers: int, length: int) -> Iterator[Any]:
    """`StreamingDataset` with `TokensLoader`."""
    from litdata import StreamingDataLoader, StreamingDataset, TokensLoader

    dataset = StreamingDataset(str(path), item_loader=TokensLoader(block_size=length), shuffle=True)
    return iter(StreamingDataLoader(dataset, batch_size=BATCH, num_workers=workers))


def datasets(path: Path, workers: int, length: int) -> Iterator[Any]:
    """Mapped Arrow files, as tensors, in the DataLoader's own random order."""
    from datasets import Dataset, concatenate_datasets
    from torch.utils.data import DataLoader

    dataset = concatenate_datasets([Dataset.from_file(str(file)) for file in sorted(path.glob("*.arrow"))])
    rows: Any = dataset.select_columns(["input_ids"]).with_format("torch")
    return (each["input_ids"] for each in DataLoader(rows, batch_size=BATCH, shuffle=True, num_workers=workers))


def megatron(path: Path, workers: int, length: int) -> Iterator[Any]:
    """`GPTDataset` over its indexed dataset, with labels, positions and loss mask, through PyTorch's DataLoader."""
    from types import SimpleNamespace

    from megatron.core.datasets.gpt_dataset import GPTDataset, GPTDatasetConfig
    from megatron.core.datasets.indexed_dataset import IndexedDataset
    from megatron.core.datasets.utils import Split
    from torch.utils.data import DataLoader

    config = GPTDatasetConfig(
        random_seed=0,
        sequence_length=length,
        blend=([str(path / "tokens")], None),
        split="1",
        path_to_cache=str(path / "cache"),
        tokenizer=SimpleNamespace(eod=0, pad=0, vocab_size=50_257, unique_identifiers={"class": "none"}),
        reset_position_ids=False,
        reset_attention_mask=False,
        eod_mask_loss=False,
        create_attention_mask=False,
    )
    indexed = IndexedDataset(str(path / "tokens"), mmap=True)
    rows = int(indexed.sequence_lengths.sum()) // length - 1
    dataset = GPTDataset(
        indexed, str(path / "tokens"), np.arange(len(indexed.document_indices) - 1), rows, Split.train, config
    )
    return (each["tokens"] for each in DataLoader(dataset, batch_size=BATCH, num_workers=workers))


READERS: dict[str, tuple[Callable[[Path, int, int], Iterator[Any]], str]] = {
    "numpy": (numpy, "numpy"),
    "nanogpt": (nanogpt, "torch"),
    "ready": (ready, "torch"),
    "packtool_ids": (packtool_ids, "packtool.torch"),
    "packtool_all": (packtool_all, "packtool.torch"),
    "mosaicml": (mosaicml, "streaming"),
    "litdata": (litdata, "litdata"),
    "datasets": (datasets, "datasets"),
    "megatron": (megatron, "megatron.core.datasets.gpt_dataset"),
}


def measure(reader: str, path: Path, workers: int, seconds: float, length: int) -> dict[str, float]:
    """Seconds to the first batch, then tokens a second, over so many seconds or the whole dataset."""
    make, library = READERS[reader]
    if reader != "numpy":
        import torch

        torch.set_num_threads(1)
    if reader == "mosaicml":
        from tests.interop.peer_formats import _torchvision

        _torchvision()
    importlib.import_module(library)
    began = time.perf_counter()
    batches = make(path, workers, length)
    next(batches)
    first = time.perf_counter() - began
    tokens, cpu, began = 0, _cpu(), time.perf_counter()
    for each in batches:
        tokens += each.size if isinstance(each, np.ndarray) else each.numel()
        if time.perf_counter() - began > seconds:
            break
    wall = time.perf_counter() - began
    return {"first_batch": first, "tokens_per_s": tokens / wall, "tokens_per_cpu_s": tokens / max(0.01, _cpu() - cpu)}


def _cpu() -> float:
    """CPU seconds of this process and its workers: all of its group."""
    total, group = 0, os.getpgrp()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == group:
            total += sum(map(int, fields[11:15]))
    return total / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    name, source, workers, seconds, length = sys.argv[1:]
    print(json.dumps(measure(name, Path(source), int(workers), float(seconds), int(length))), flush=True)
    os._exit(0)  # readers' threads and workers may take long to end; the tree is ended by who measures
