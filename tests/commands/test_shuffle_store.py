"""The partial shuffle from end to end: what is left over, and epochs that are a number for each lane."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import packtool
from packtool.errors import UsageError
from packtool.formats.packed import PackedDataset
from packtool.formats.token_store import TokenStore
from packtool.planning.plan import offsets_of
from packtool.reading.batch import IGNORED
from packtool.reading.stream import Stream
from tests.commands.rebuilt import rebuilt
from tests.stores import document_loss, write_store

LENGTHS = np.random.default_rng(1).integers(1, 90, 120).tolist()
PARTIAL: dict[str, Any] = {"method": "partial", "batch_size": 4, "sequence_length": 32}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_store(tmp_path_factory.mktemp("partial") / "store", LENGTHS, per_shard=50)


def test_with_shorter_last_rows_less_than_a_token_for_each_lane_is_dropped(store: Path, tmp_path: Path) -> None:
    """N // B tokens to a lane, as in the code released with the paper; by default lanes are whole rows."""
    whole = packtool.shuffle(store, tmp_path / "whole", **PARTIAL)
    short = packtool.shuffle(store, tmp_path / "short", remainder="pad", **PARTIAL)
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
    assert result.report.ledger.input == text
    dropped = stream[steps * 4 * 32 :]
    assert result.report.ledger.dropped == int((dropped != 0).sum())
    assert result.report.ledger.padding == 0
    assert rebuilt(PackedDataset(tmp_path / "a"), TokenStore(store)) == steps * 4 * 32
    assert packtool.verify(tmp_path / "a").problems == []
    packtool.shuffle(store, tmp_path / "b", method="partial", batch_size=4, sequence_length=32, epoch=1)
    other = PackedDataset(tmp_path / "b").buckets[0].tokens(0, 4 * steps)
    assert (other != rows).any()


@pytest.mark.parametrize(("remainder", "index_only"), [("drop", False), ("pad", True)])
def test_the_last_label_of_a_row_is_the_next_token_of_its_lane(
    tmp_path: Path, remainder: str, index_only: bool
) -> None:
    generator = np.random.default_rng(3)
    plain = write_store(tmp_path / "plain", LENGTHS)
    masked = write_store(tmp_path / "masked", LENGTHS, loss=document_loss)
    for store in (plain, masked):
        rows = tmp_path / f"{store.name}-rows"
        packtool.shuffle(store, rows, remainder=remainder, index_only=index_only, **PARTIAL)
        for dataset in (packtool.open(rows), packtool.open(rows).epoch(1)):
            lane = (dataset.manifest.ledger.output - dataset.manifest.ledger.padding) // 4
            order = generator.permutation(len(dataset))
            for across in (True, False):
                batch = dataset.batch(order, train_across_documents=across)
                labels = np.empty_like(batch["labels"])
                labels[order] = batch["labels"]
                trained = dataset.loss(slice(None))
                for number in range(4):
                    text, found = (each[number::4].reshape(-1)[:lane] for each in (dataset[:], labels))
                    expected = np.append(text[1:].astype(np.int64), IGNORED)
                    if trained is not None:
                        expected[:-1][trained[number::4].reshape(-1)[1:lane] == 0] = IGNORED
                    tables = [dataset.segments(row) for row in range(number, len(dataset), 4)]
                    starts, lengths = (
                        np.concatenate([table[name] for table in tables]).astype(np.int64)
                        for name in ("start", "length")
                    )
                    places = offsets_of(lengths)[:-1]
                    joined = np.concatenate([[False], starts[1:] != starts[:-1] + lengths[:-1]])
                    if not across:
                        begins = places[(starts == 0) & (places > 0) & (places < lane)]
                        expected[begins - 1] = IGNORED
                    # Where the lane was rotated, its end does not predict the rest of the document that it begins with.
                    inside = places[joined & (starts > 0) & (places < lane)]
                    expected[inside - 1] = IGNORED
                    np.testing.assert_array_equal(found, expected)


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
