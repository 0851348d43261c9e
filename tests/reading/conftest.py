"""Datasets with atoms of every kind, to read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import packtool
from tests.reading.opening import KINDS, LENGTHS
from tests.stores import write_store


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_store(tmp_path_factory.mktemp("reading") / "store", LENGTHS, per_shard=40)


@pytest.fixture(scope="session")
def packed(store: Path) -> dict[str, Path]:
    paths = {name: store.parent / name for name in KINDS}
    for name, path in paths.items():
        packtool.pack(store, path, shard_tokens=1024, **KINDS[name])
    return paths


@pytest.fixture(scope="session")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows of one length; beside them, of the same store, rows of several, and an index, to be packed anew."""
    place = tmp_path_factory.mktemp("sampler")
    write_store(place / "store", np.random.default_rng(3).integers(1, 60, 60).tolist())
    packtool.pack(place / "store", place / "rows", strategy="concat", sequence_length=32)
    packtool.pack(place / "store", place / "buckets", strategy="buckets", buckets=(16, 32, 64))
    packtool.pack(place / "store", place / "index", strategy="concat", sequence_length=32, index_only=True)
    return place / "rows"
