"""The reader: one interface for rows and for batches, in any order, in any process."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import packtool
from packtool.errors import UsageError
from packtool.formats.names import SEGMENT
from tests.reading.opening import bucketed, opened


def test_wrong_indices(packed: dict[str, Path]) -> None:
    dataset = opened(packed["rows"])
    size = len(dataset)
    for index in (size, -size - 1, [0, size], np.array([-size - 1])):
        with pytest.raises(IndexError, match=rf"row -?\d+ of {size}"):
            dataset[index]
    for index in (1.5, "rows", [[0, 1]], [0.5], None, True):
        with pytest.raises(TypeError, match="a row is chosen by an integer"):
            dataset[index]  # type: ignore[index]


def test_a_row_and_its_segments_are_views(packed: dict[str, Path]) -> None:
    dataset = opened(packed["rows"])
    for array in (dataset[3], dataset[2:6], dataset.segments(3)):
        assert not array.flags.owndata
        assert not array.flags.writeable
    assert dataset.segments(3).dtype == SEGMENT


@pytest.mark.parametrize("kind", ["rows", "small-atoms"])
def test_it_pickles_by_path_and_epoch(
    packed: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.chdir(tmp_path)
    relative = os.path.relpath(packed[kind])
    for dataset in (opened(Path(relative), dtype="int64"), opened(Path(relative)).epoch(2, seed=7)):
        list(dataset)
        data = pickle.dumps(dataset)
        assert len(data) < 1000
        with monkeypatch.context() as elsewhere:
            elsewhere.chdir("/")
            again = pickle.loads(data)
            np.testing.assert_array_equal(np.stack(list(again)), np.stack(list(dataset)))
        assert again[0].dtype == dataset[0].dtype
        assert repr(again) == repr(dataset)


def test_numpy_msgspec_and_xxhash_are_enough(packed: dict[str, Path]) -> None:
    """A trainer's workers load nothing heavier, whatever they read."""
    code = """
import sys
for name in ("pyarrow", "tokenizers", "gigatoken", "scipy", "tqdm", "rich", "typer"):
    sys.modules[name] = None  # as if it were not installed
import packtool
from packtool.reading.batches import GlobalBatches
from packtool.reading.stream import Stream
dataset = packtool.open(sys.argv[1])
for each in (dataset, dataset.epoch(2)):
    each[3], each[[1, 2]], each[:], each.segments(0), each.batch([0, 1])
for turn in GlobalBatches(stream := Stream(sys.argv[1], epochs=2), 4):
    stream.batch(turn.addresses)
"""
    done = subprocess.run([sys.executable, "-c", code, packed["rows"]], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_what_it_says_it_is(packed: dict[str, Path], tmp_path: Path, store: Path) -> None:
    dataset = opened(packed["rows"])
    assert repr(dataset) == f"<packtool dataset: {len(dataset)} rows of 32 tokens, {packed['rows']}>"
    assert repr(dataset.epoch(2)).endswith(", epoch 2 of seed 42>")
    packtool.pack(store, tmp_path / "b", strategy="buckets", buckets=(16, 64))
    sizes = {length: len(rows) for length, rows in bucketed(tmp_path / "b").buckets.items()}
    assert f"no batches, rows: {sizes[16]} of 16, {sizes[64]} of 64 tokens, " in repr(packtool.open(tmp_path / "b"))


@pytest.mark.parametrize("drop", [False, True])
def test_batches_are_items(store: Path, tmp_path: Path, drop: bool) -> None:
    packtool.pack(store, tmp_path / "packed", strategy="buckets", buckets=(16, 32, 64))
    remainder = "drop" if drop else "pad"
    made = {"method": "bucket", "batch_tokens": 192, "remainder": remainder, "epoch": 2}
    packtool.shuffle(tmp_path / "packed", tmp_path / "rows", **made)
    rows = bucketed(tmp_path / "rows")
    assert [batch.shape for batch in rows[-2:]] == [rows[-2].shape, rows[-1].shape]
    assert [batch.shape for batch in rows[[0, 1]]] == [rows[0].shape, rows[1].shape]
    assert [batch.shape for batch in rows] == [rows[number].shape for number in range(len(rows))]
    with pytest.raises(IndexError, match=f"batch {len(rows)} of {len(rows)}"):
        rows[len(rows)]
    some = np.arange(len(rows)) % 3 == 1
    for mine, theirs in zip(rows[some], rows[np.flatnonzero(some)], strict=True):
        np.testing.assert_array_equal(mine, theirs)
    with pytest.raises(
        TypeError, match="a batch is chosen by an integer, several by a slice or by integers in one dimension"
    ):
        rows[[0.5]]  # type: ignore[list-item]
    with pytest.raises(TypeError, match="a batch is chosen by an integer, not True"):
        rows[True]
    with pytest.raises(UsageError, match="batch_tokens: rows of several lengths need batches"):
        bucketed(tmp_path / "packed").epoch(2)
    with pytest.raises(UsageError, match=r"the dataset has no batches\. Make them"):
        len(bucketed(tmp_path / "packed"))


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float64", "bool", "<U4"])
def test_a_type_that_does_not_hold_the_token_ids_is_refused(packed: dict[str, Path], dtype: str) -> None:
    stored = opened(packed["rows"])
    largest = stored.manifest.tokenizer.vocab_size - 1
    with pytest.raises(UsageError, match=rf"dtype: \S+ does not hold token ids up to {largest}\. Give int64"):
        opened(packed["rows"], dtype=dtype)
    for wide in ("uint16", "int32", "int64", np.uint32):
        np.testing.assert_array_equal(opened(packed["rows"], dtype=wide)[:], stored[:])


@pytest.mark.parametrize("value", [-1, 1.5, "1", 1 << 64])
def test_epochs_and_seeds_that_make_no_sense_are_refused(packed: dict[str, Path], value: Any) -> None:
    dataset = opened(packed["rows"])
    for where, arguments in (("epoch", {"number": value}), ("seed", {"number": 1, "seed": value})):
        with pytest.raises(
            UsageError, match=rf"{where}: {value!r} is out of range\. Give a whole number from 0 to \d+\."
        ):
            dataset.epoch(**arguments)
    assert (dataset.epoch(np.int64(1))[:] == dataset.epoch(1)[:]).all()
