"""Runs in the peers' environment: one reader over one dataset, or what starting costs.

    PYTHON -m benchmarks.loader_run READER DATASET BATCH_ROWS WORKERS SECONDS

Prints JSON: tokens a second of wall time, and of CPU time with that of workers; the first batch does not count.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np


def plain(path: Path, batch: int, workers: int) -> Iterator[Any]:
    """NumPy alone, in this process: the rows in random order, gathered from the mapped shards, as int64."""
    assert not workers
    shards = [np.load(file, mmap_mode="r") for file in sorted(path.glob("tokens-*.npy"))]
    first = np.cumsum([0, *map(len, shards)])
    order = np.random.default_rng(0).permutation(first[-1])
    for begin in range(0, len(order) - batch + 1, batch):
        rows = order[begin : begin + batch]
        out = np.empty((batch, shards[0].shape[1]), np.int64)
        which = np.searchsorted(first, rows, side="right") - 1
        for shard in np.unique(which):
            mine = which == shard
            out[mine] = shards[shard][rows[mine] - first[shard]]
        yield out


def packtool_ids(path: Path, batch: int, workers: int) -> Iterator[Any]:
    """`packtool.torch.Loader` with inputs and labels, and attention across documents, as the others give."""
    from packtool.torch import Loader

    loader = Loader(path, batch_size=batch, num_workers=workers, documents=False, fields=("input_ids", "labels"))
    return (each["input_ids"] for each in loader)


def packtool_all(path: Path, batch: int, workers: int) -> Iterator[Any]:
    """`packtool.torch.Loader` with all that it makes: labels, positions, document ids, cu_seqlens."""
    from packtool.torch import Loader

    return (each["input_ids"] for each in Loader(path, batch_size=batch, num_workers=workers))


def mosaicml(path: Path, batch: int, workers: int) -> Iterator[Any]:
    """MosaicML Streaming, shuffled."""
    import torch
    from torch.utils.data import DataLoader

    from tests.interop.peer_formats import _torchvision

    _torchvision()
    from streaming import StreamingDataset

    dataset = StreamingDataset(local=str(path), shuffle=True, batch_size=batch)

    def collate(samples: list[dict[str, Any]]) -> Any:
        return torch.from_numpy(np.stack([sample["tokens"] for sample in samples]).astype(np.int64))

    return iter(DataLoader(dataset, batch_size=batch, num_workers=workers, collate_fn=collate))


def litdata(path: Path, batch: int, workers: int) -> Iterator[Any]:
    """litdata, shuffled."""
    from litdata import StreamingDataLoader, StreamingDataset, TokensLoader

    dataset = StreamingDataset(str(path), item_loader=TokensLoader(block_size=2048), shuffle=True)
    return iter(StreamingDataLoader(dataset, batch_size=batch, num_workers=workers))


def datasets(path: Path, batch: int, workers: int) -> Iterator[Any]:
    """Hugging Face datasets on mapped Arrow files, as tensors, in the DataLoader's own random order."""
    from datasets import Dataset, concatenate_datasets
    from torch.utils.data import DataLoader

    dataset = concatenate_datasets([Dataset.from_file(str(file)) for file in sorted(path.glob("*.arrow"))])
    loader = DataLoader(
        dataset.select_columns(["input_ids"]).with_format("torch"), batch_size=batch, shuffle=True, num_workers=workers
    )
    return (each["input_ids"] for each in loader)


READERS: dict[str, Callable[[Path, int, int], Iterator[Any]]] = {
    each.__name__: each for each in (plain, packtool_ids, packtool_all, mosaicml, litdata, datasets)
}


def measure(reader: str, path: Path, batch: int, workers: int, seconds: float) -> dict[str, float]:
    """Tokens a second, over so many seconds or the whole dataset."""
    batches = READERS[reader](path, batch, workers)
    next(batches)
    tokens, began = 0, time.perf_counter()
    cpu = _cpu()
    for each in batches:
        tokens += each.size if isinstance(each, np.ndarray) else each.numel()
        if time.perf_counter() - began > seconds:
            break
    wall = time.perf_counter() - began
    return {"tokens": tokens, "wall": tokens / wall, "cpu": tokens / (_cpu() - cpu)}


def _cpu() -> float:
    """CPU seconds of this process and of its children, those that ended included."""
    total = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == _GROUP:
            total += sum(map(int, fields[11:15]))
    return total / 100


def start(path: Path, workers: int) -> dict[str, float]:
    """Seconds from making a loader to its first batch, with spawned workers, PyTorch being loaded here."""
    from packtool.torch import Loader

    began = time.perf_counter()
    loader = Loader(path, batch_size=8, num_workers=workers, multiprocessing_context="spawn")
    for _ in islice(loader, 1):
        first = time.perf_counter() - began
    return {"first_batch": first}


def opening(path: Path) -> dict[str, float]:
    """Seconds that `packtool.open` takes, the median of nine."""
    import packtool

    packtool.open(path)
    taken = []
    for _ in range(9):
        began = time.perf_counter()
        packtool.open(path)
        taken.append(time.perf_counter() - began)
    return {"open": sorted(taken)[4]}


if __name__ == "__main__":
    import os

    os.setpgid(0, 0)
    _GROUP = os.getpgrp()
    what, source, *rest = sys.argv[1:]
    if what == "start":
        found = start(Path(source), int(rest[0]))
    elif what == "open":
        found = opening(Path(source))
    else:
        found = measure(what, Path(source), int(rest[0]), int(rest[1]), float(rest[2]))
    print(json.dumps(found))
