"""Row lengths over time: weights say when which length comes, and every row still comes once."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import packtool
from packtool.errors import UsageError
from packtool.reading import BucketDataset
from tests.making import Make, drawn_lengths

GROW = [{"weights": {"32": 8, "64": 2}}, {"from": "50%", "ramp": True, "weights": {"128": 1}}]


@pytest.fixture(scope="module")
def several(make: Make) -> Path:
    options = {"strategy": "decompose", "sequence_length": 128, "min_bucket": 32}
    return make(drawn_lengths(400, 299, 4), rows=options) / "rows"


def opened(several: Path, stages: Any = (), **options: Any) -> BucketDataset:
    dataset = packtool.open(packtool.Blend({"all": several}, stages, batch_tokens=256, **options))
    assert isinstance(dataset, BucketDataset)
    return dataset


def test_short_rows_first_and_each_row_once(several: Path) -> None:
    grown, plain = opened(several, GROW), packtool.open(several)
    assert isinstance(plain, BucketDataset)
    drawn = plain.epoch(0, batch_tokens=256)
    assert grown.batches is not None
    assert drawn.batches is not None
    for length in (32, 64, 128):  # those of one length stay in the order that was drawn
        one, other = (each.batches[each.batches["bucket"] == length] for each in (grown, drawn))  # type: ignore[index]
        assert one.tolist() == other.tolist()
    assert sorted(grown.batches.tolist()) == sorted(drawn.batches.tolist())
    bucket = grown.batches["bucket"]
    half = len(bucket) // 2
    short = np.count_nonzero(bucket == 32)
    assert np.count_nonzero(bucket[:half] == 32) == min(short, round(0.8 * half)) or short < 0.8 * half
    assert not (bucket[: half - 1] == 128).any() or short + np.count_nonzero(bucket == 64) < half
    assert np.mean(bucket[:half]) < np.mean(bucket[half:])


def test_without_stages_lengths_are_spread_evenly(several: Path) -> None:
    bucket = opened(several).batches["bucket"]  # type: ignore[index]
    for length in (32, 64, 128):
        mine = np.flatnonzero(bucket == length)
        assert np.ptp(np.diff(mine)) <= 4


def test_it_pickles_and_has_epochs(several: Path) -> None:
    grown = opened(several, GROW)
    again = pickle.loads(pickle.dumps(grown))
    assert again.batches.tolist() == grown.batches.tolist()  # type: ignore[union-attr]
    other = grown.epoch(1, batch_tokens=256, blend=packtool.Blend({"all": several}, GROW))
    assert other.batches.tolist() != grown.batches.tolist()  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("stages", "options", "message"),
    [
        ([{"weights": {"32": 1}}], {}, "blend: row length 64 has a weight in no stage. Give it one, which may be 0"),
        ([{"weights": {"48": 1}}], {}, "stages[0].weights.48: there is no row length '48'. Choose one of 32, 64, 128."),
        ((), {"rows": 5}, "rows: where weights are of row lengths, every row comes once an epoch, and the epochs are"),
        ([*GROW, {"from": "3 rows", "weights": {"32": 1}}], {}, "stages[2].from: rows of several lengths. Give tokens"),
    ],
)
def test_mistakes(several: Path, stages: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        opened(several, stages, **options)
    assert str(caught.value).startswith(message)
    with pytest.raises(UsageError, match="rows of several lengths need batches of one length each"):
        packtool.open(packtool.Blend({"all": several}, GROW))
