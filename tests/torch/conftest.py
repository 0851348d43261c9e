"""Tests that need PyTorch, and programs that they run: not looked at where it is not installed."""

from importlib.util import find_spec
from pathlib import Path

import pytest

import packtool
from tests.making import Make, drawn_lengths

collect_ignore_glob = ["context.py"] if find_spec("torch") else ["*"]  # it imports code of a page


@pytest.fixture(scope="session")
def rows(make: Make) -> Path:
    """Rows, seven batches of 16; beside them others of the same store, which no test changes.

    Rows with a token more, in another order, of several lengths, batches of these, and lanes.
    """
    options = {"strategy": "bfd", "sequence_length": 64, "shard_tokens": 1024}
    place = make(
        drawn_lengths(200, 59, 3, 1),
        {"per_shard": 50},
        rows=options,
        longer={**options, "sequence_length": 65},
        other={**options, "seed": 9},
        buckets={"strategy": "buckets", "buckets": (16, 32, 64)},
    )
    packtool.shuffle(place / "buckets", place / "batches", method="bucket", batch_tokens=256)
    packtool.shuffle(place / "store", place / "lanes", method="partial", batch_size=4, sequence_length=64)
    return place / "rows"
