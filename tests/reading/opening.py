"""Datasets opened by the reader, and by NumPy alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import packtool
from packtool.reading import BucketDataset, Dataset

LENGTHS = np.random.default_rng(3).integers(1, 90, 150).tolist()

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


def plain(path: Path) -> np.ndarray[Any, Any]:
    """All rows, by NumPy alone."""
    return np.concatenate([np.load(file) for file in sorted(path.glob("tokens-*.npy"))])
