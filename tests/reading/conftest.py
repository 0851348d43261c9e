"""Datasets with atoms of every kind, to read."""

from pathlib import Path

import pytest

from tests.making import Make, drawn_lengths
from tests.reading.opening import KINDS, LENGTHS


@pytest.fixture(scope="session")
def packed(make: Make) -> dict[str, Path]:
    place = make(LENGTHS, {"per_shard": 40}, **{name: {**KINDS[name], "shard_tokens": 1024} for name in KINDS})
    return {name: place / name for name in KINDS}


@pytest.fixture(scope="session")
def rows(make: Make) -> Path:
    """Rows of one length; beside them, of the same store, rows of several, and an index, to be packed anew."""
    options = {"strategy": "concat", "sequence_length": 32}
    buckets = {"strategy": "buckets", "buckets": (16, 32, 64)}
    return (
        make(drawn_lengths(60, 59, 3, 1), rows=options, buckets=buckets, index={**options, "index_only": True}) / "rows"
    )
