"""A store to pack."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.stores import write_store

LENGTHS = np.random.default_rng(1).integers(1, 200, 150).tolist()


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_store(tmp_path_factory.mktemp("partition") / "store", LENGTHS, per_shard=40)
