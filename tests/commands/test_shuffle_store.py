"""The partial shuffle from end to end: what is left over, and epochs that are a number for each lane."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import packtool
from packtool.errors import UsageError
from packtool.formats.packed import PackedDataset
from packtool.formats.token_store import TokenStore
from packtool.reading.batch import IGNORED
from packtool.reading.stream import Stream
from tests.making import Make

LENGTHS = np.random.default_rng(1).integers(1, 90, 120).tolist()
PARTIAL: dict[str, Any] = {"method": "partial", "batch_size": 4, "sequence_length": 32}


@pytest.fixture
def store(make: Make) -> Path:
    return make(LENGTHS, {"per_shard": 50}) / "store"


@pytest.mark.parametrize("remainder", ["drop", "pad"])
def test_rows_of_a_batch_go_on_in_the_lanes_of_the_stream(store: Path, tmp_path: Path, remainder: str) -> None:
    """Lanes are whole rows; or N // B tokens, as in the code released with the paper, with a shorter last row."""
    ledger = packtool.shuffle(store, tmp_path / "rows", remainder=remainder, **PARTIAL).report.ledger
    stream = np.concatenate([TokenStore(store).document(i) for i in range(len(LENGTHS))])
    lane = len(stream) // 4
    assert lane % 32
    if remainder == "drop":
        lane -= lane % 32
    assert ledger.rows == 4 * -(-lane // 32)
    assert ledger.padding == 4 * (-lane % 32)
    assert ledger.output == 4 * lane + ledger.padding
    assert ledger.input == sum(LENGTHS) - len(LENGTHS)
    assert ledger.dropped == np.count_nonzero(stream[4 * lane :])
    rows = PackedDataset(tmp_path / "rows").buckets[0].tokens.between(0, ledger.rows)
    for number in range(4):
        found = rows[number::4].reshape(-1)[:lane]
        assert found.tobytes() in np.tile(stream[number * lane : (number + 1) * lane], 2).tobytes()
    assert packtool.verify(tmp_path / "rows", store=store).problems == []
    packtool.shuffle(store, tmp_path / "next", remainder=remainder, epoch=1, **PARTIAL)
    assert (PackedDataset(tmp_path / "next").buckets[0].tokens.between(0, ledger.rows) != rows).any()


def test_the_last_place_of_a_row_of_a_lane_in_other_kinds_of_labels(store: Path, tmp_path: Path) -> None:
    """A model that shifts labels itself has no target there; an extra token would never be read."""
    packtool.shuffle(store, tmp_path / "rows", **PARTIAL)
    dataset = packtool.open(tmp_path / "rows")
    batch = dataset.batch(range(8), labels="same")
    assert (batch["labels"][:, 0] == IGNORED).all()
    np.testing.assert_array_equal(batch["labels"][:, 1:], dataset[:8][:, 1:])
    message = "extra_token: rows of the partial shuffle go on in the next batch"
    with pytest.raises(UsageError, match=message):
        dataset.batch([0], extra_token=True)
    blend = packtool.Blend({"lanes": tmp_path / "rows"}, [{"weights": {"lanes": 1}}], rows=100)
    for source in (tmp_path / "rows", blend):
        with pytest.raises(UsageError, match=message):
            Stream(source, extra_token=True)


def test_lanes_that_are_not_rotated_are_the_stream(store: Path, tmp_path: Path) -> None:
    packtool.shuffle(store, tmp_path / "rows", rotate=False, **PARTIAL)
    stream = np.concatenate([TokenStore(store).document(i) for i in range(len(LENGTHS))])
    dataset = packtool.open(tmp_path / "rows")
    lanes = stream[: len(dataset) * 32].reshape(4, -1)
    for epoch in (dataset, dataset.epoch(0), dataset.epoch(3), dataset.epoch(3, seed=9)):
        np.testing.assert_array_equal(epoch[:].reshape(-1, 4, 32).transpose(1, 0, 2).reshape(4, -1), lanes)
    assert packtool.verify(tmp_path / "rows").problems == []
    for given in ({"epoch": 1}, {"seed": 7}):
        with pytest.raises(
            UsageError, match="rotate=False: lanes that are not rotated are the same for every seed and"
        ):
            packtool.shuffle(store, tmp_path / "other", rotate=False, **given, **PARTIAL)
    with pytest.raises(UsageError, match='rotate: method="atom" does not take this option'):
        packtool.shuffle(tmp_path / "rows", tmp_path / "other", rotate=False)
