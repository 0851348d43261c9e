"""Streams whose epochs are packed anew, where epochs differ in their rows."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import packtool
from packtool.reading.batches import GlobalBatches
from packtool.reading.stream import Stream
from tests.making import Make, drawn_lengths


@pytest.fixture
def index(make: Make) -> Path:
    """Rows of windows so small that their number differs from epoch to epoch."""
    options: dict[str, Any] = {"strategy": "bfd", "sequence_length": 64, "window_tokens": 400}
    epochs = {f"{epoch}": {**options, "epoch": epoch} for epoch in range(4)}
    return make(drawn_lengths(200, 59, 3), index={**options, "index_only": True}, **epochs) / "index"


def rows_of(index: Path, epochs: range) -> np.ndarray[Any, Any]:
    """The rows that `pack` writes for these epochs."""
    return np.concatenate([packtool.open(index.parent / f"{epoch}")[:] for epoch in epochs])


def test_epochs_are_those_that_pack_writes(index: Path) -> None:
    """Those of the first pass, and those of the next, which follow them."""
    counts = [len(packtool.open(index.parent / f"{epoch}")) for epoch in range(4)]
    assert len(set(counts)) > 1, "epochs differ in rows"
    for stream, passes in ((Stream(index, epochs=4, repack=True), 1), (Stream(index, epochs=2, repack=True), 2)):
        assert len(stream) == sum(counts[: 4 // passes])
        turns = [turn.addresses for batches in [GlobalBatches(stream, 4, drop_last=False)] * passes for turn in batches]
        found = pickle.loads(pickle.dumps(stream)).batch(np.concatenate(turns))["input_ids"]
        assert np.array_equal(found, rows_of(index, range(4)))
