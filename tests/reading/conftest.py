"""Datasets with atoms of every kind, to read."""

from __future__ import annotations

from pathlib import Path

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
