"""Streams whose epochs are packed anew: resuming, world sizes and passes, where epochs differ in their rows."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import packtool
from packtool.errors import DataError, UsageError
from packtool.reading.batches import GlobalBatches
from packtool.reading.stream import Stream
from tests.reading.opening import stopped
from tests.stores import write_store

LENGTHS = np.random.default_rng(3).integers(2, 60, 200).tolist()


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows of windows so small that their number differs from epoch to epoch."""
    place = tmp_path_factory.mktemp("repacked")
    write_store(place / "store", LENGTHS)
    options: dict[str, Any] = {"strategy": "bfd", "sequence_length": 64, "window_tokens": 400}
    packtool.pack(place / "store", place / "index", **options, index_only=True)
    for epoch in range(4):
        packtool.pack(place / "store", place / f"{epoch}", **options, epoch=epoch)
    return place / "index"


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


def test_a_state_is_of_one_way_to_make_epochs(index: Path) -> None:
    state = stopped(GlobalBatches(Stream(index, repack=True), 4))
    with pytest.raises(DataError, match="order: repacked in the state, computed in this loader"):
        GlobalBatches(Stream(index), 4).load_state_dict(state)


def test_an_order_of_its_own_is_refused(index: Path) -> None:
    with pytest.raises(UsageError, match="an epoch that is packed anew has an order of its own"):
        Stream(index, repack=True, shuffle=False)
