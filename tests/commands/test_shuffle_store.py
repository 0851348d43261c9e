"""The partial shuffle from end to end: what is left over, and epochs that are a number for each lane."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import packtool
from packtool.reading import Dataset
from packtool.storage.packed import PackedDataset
from packtool.storage.token_store import TokenStore
from tests.commands.rebuilt import rebuilt
from tests.stores import write_store

LENGTHS = np.random.default_rng(1).integers(1, 90, 120).tolist()
PARTIAL: dict[str, Any] = {"method": "partial", "batch_size": 4, "sequence_length": 32}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_store(tmp_path_factory.mktemp("partial") / "store", LENGTHS, per_shard=50)


def test_with_shorter_last_rows_less_than_a_token_for_each_lane_is_dropped(store: Path, tmp_path: Path) -> None:
    """N // B tokens to a lane, as in the code released with the paper; by default lanes are whole rows."""
    whole = packtool.shuffle(store, tmp_path / "whole", **PARTIAL)
    short = packtool.shuffle(store, tmp_path / "short", remainder="pad", **PARTIAL)
    assert whole.report is not None
    assert short.report is not None
    tokens = sum(LENGTHS)
    lane = tokens // 4
    assert lane % 32
    ledger = short.report.ledger
    assert ledger.output - ledger.padding == 4 * lane
    assert ledger.rows == whole.report.ledger.rows + 4
    assert ledger.padding == 4 * (-lane % 32)
    assert whole.report.ledger.padding == 0
    assert whole.report.ledger.output == tokens // 128 * 128
    stream = np.concatenate([TokenStore(store).document(i) for i in range(len(LENGTHS))])
    rows = PackedDataset(tmp_path / "short").buckets[0].tokens(0, ledger.rows)
    for number in range(4):
        found = rows[number::4].reshape(-1)[:lane]
        assert found.tobytes() in np.tile(stream[number * lane : (number + 1) * lane], 2).tobytes()
    assert packtool.verify(tmp_path / "short").problems == []


@pytest.mark.parametrize("remainder", ["drop", "pad"])
def test_an_epoch_is_a_number_for_each_lane(store: Path, tmp_path: Path, remainder: str) -> None:
    """An epoch, read from the rows of another, gives the rows that it would have been written as."""
    options = {**PARTIAL, "remainder": remainder, "seed": 7}
    packtool.shuffle(store, tmp_path / "first", epoch=2, **options)
    packtool.shuffle(store, tmp_path / "wanted", epoch=1, **options)
    wanted, found = packtool.open(tmp_path / "wanted"), packtool.open(tmp_path / "first").epoch(1)
    assert isinstance(found, Dataset)
    np.testing.assert_array_equal(found[:], wanted[:])
    np.testing.assert_array_equal(found[[5, -1, 3]], wanted[[5, -1, 3]])
    for row in range(len(wanted)):
        np.testing.assert_array_equal(found.segments(row), wanted.segments(row))
    assert (packtool.open(tmp_path / "first").epoch(2)[:] == packtool.open(tmp_path / "first")[:]).all()


def test_partial(store: Path, tmp_path: Path) -> None:
    result = packtool.shuffle(store, tmp_path / "a", method="partial", batch_size=4, sequence_length=32)
    stream = np.concatenate([TokenStore(store).document(i) for i in range(len(LENGTHS))])
    steps = len(stream) // (4 * 32)
    lanes = stream[: steps * 4 * 32].reshape(4, -1)
    rows = PackedDataset(tmp_path / "a").buckets[0].tokens(0, 4 * steps)
    for lane in range(4):
        ring = np.tile(lanes[lane], 2).tobytes()
        assert rows[lane::4].tobytes() in ring
    text = sum(n - 1 for n in LENGTHS)
    assert result.report is not None
    assert result.report.ledger.input == text
    dropped = stream[steps * 4 * 32 :]
    assert result.report.ledger.dropped == int((dropped != 0).sum())
    assert result.report.ledger.padding == 0
    assert rebuilt(PackedDataset(tmp_path / "a"), TokenStore(store)) == steps * 4 * 32
    assert packtool.verify(tmp_path / "a").problems == []
    packtool.shuffle(store, tmp_path / "b", method="partial", batch_size=4, sequence_length=32, epoch=1)
    other = PackedDataset(tmp_path / "b").buckets[0].tokens(0, 4 * steps)
    assert (other != rows).any()
