"""Datasets opened by the reader, and by NumPy alone."""

from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

import packtool
from packtool.reading import Batch, BucketDataset, Dataset
from packtool.reading.batches import GlobalBatches
from packtool.reading.sharing import MicroBatch
from packtool.reading.stream import Stream
from tests.making import Make, drawn_lengths

LENGTHS = drawn_lengths(150, 89, 3, 1)

KINDS: dict[str, dict[str, Any]] = {
    "rows": {"strategy": "bfd", "sequence_length": 32},
    "small-atoms": {"strategy": "concat", "sequence_length": 32, "atom_size": 8},
    "large-atoms": {"strategy": "concat", "sequence_length": 32, "atom_size": 96},
    "varying-atoms": {"strategy": "padding", "sequence_length": 32, "atom_size": 96},
    "joined-padding": {"strategy": "padding", "sequence_length": 32, "atom_size": 8},
    "repeats": {"strategy": "seamless", "sequence_length": 32},
}


def opened(path: Path, **options: Any) -> Dataset:
    dataset = packtool.open(path, **options)
    assert isinstance(dataset, Dataset)
    return dataset


def bucketed(path: Path, **options: Any) -> BucketDataset:
    dataset = packtool.open(path, **options)
    assert isinstance(dataset, BucketDataset)
    return dataset


def sources_of(make: Make, sizes: Mapping[str, int], **options: dict[str, Any]) -> dict[str, Path]:
    """Datasets to blend, by name: of so many documents each, in rows of 16 tokens or with options of their own."""
    paths = {}
    for number, (name, documents) in enumerate(sizes.items()):
        packing = {"strategy": "bfd", "sequence_length": 16, **options.get(name, {})}
        paths[name] = make(drawn_lengths(documents, 29, number), {"first": 1000 * number}, **{name: packing}) / name
    return paths


def plain(path: Path) -> np.ndarray[Any, Any]:
    """All rows, by NumPy alone."""
    return np.concatenate([np.load(file) for file in sorted(path.glob("tokens-*.npy"))])


def batch_of(stream: Stream, samples: Any) -> Batch:
    """The batch of some samples that are rows of one length, by their numbers."""
    return stream.batch(stream.located(np.asarray(samples, np.int64)))


def numbers(stream: Stream, turns: Iterable[MicroBatch]) -> list[list[int]]:
    """The samples of each turn, of a dataset with rows of one length."""
    source = stream.source(0)
    out = []
    for turn in turns:
        _, epoch, _, row = turn.addresses.T
        out.append(
            [source.begin_of(number) + place for number, place in zip(epoch.tolist(), row.tolist(), strict=True)]
        )
    return out


def stopped(batches: GlobalBatches, turns: int = 1) -> dict[str, str]:
    """The state after some turns."""
    for _ in islice(batches, turns):
        pass
    return batches.state_dict()
