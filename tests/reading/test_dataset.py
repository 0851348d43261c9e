"""The reader: rows and batches by number, by slice and by array, as stored and in another order, in any process."""

import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import packtool
from packtool.errors import UsageError
from packtool.formats.names import SEGMENT
from packtool.reading.recipe import MAPPED
from tests.reading.opening import KINDS, bucketed, opened, plain
from tests.stores import write_store


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("epoch", [None, 3])
def test_items_slices_and_index_arrays(packed: dict[str, Path], tmp_path: Path, kind: str, epoch: int | None) -> None:
    path, dataset = packed[kind], opened(packed[kind])
    if epoch is not None:
        packtool.shuffle(path, tmp_path / "rows", epoch=epoch)
        path, dataset = tmp_path / "rows", dataset.epoch(epoch)
    rows, written = plain(path), opened(path)
    assert len(dataset) == len(rows) > 3 * 32
    chosen = np.random.default_rng(0).integers(-len(rows), len(rows), 50)
    everything: list[Any] = [0, -1, np.int64(5), slice(3, 90), slice(None), slice(90, 3, -7), slice(5, 5), slice(9, 2)]
    everything += [chosen, chosen.tolist(), np.arange(len(rows)) % 3 == 0]
    assert dataset[[]].shape == (0, 32)
    for index in everything:
        expected = rows[index]
        np.testing.assert_array_equal(dataset[index], expected)
    np.testing.assert_array_equal(np.stack(list(dataset)), rows)
    for row in [0, 7, len(rows) - 1, -1]:
        np.testing.assert_array_equal(dataset.segments(row), written.segments(row))
    numbers = np.concatenate([chosen % len(rows), [len(rows) - 1, 0]])
    segments = dataset.rows.segments_of(numbers)
    whole = np.concatenate([dataset.segments(int(row)) for row in numbers])
    np.testing.assert_array_equal(segments.document, whole["document"])
    np.testing.assert_array_equal(segments.repeated, whole["repeated"])
    assert (segments.tokens() == 32).all()


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


def test_what_it_says_it_is(packed: dict[str, Path], tmp_path: Path) -> None:
    dataset = opened(packed["rows"])
    assert repr(dataset) == f"<packtool dataset: {len(dataset)} rows of 32 tokens, {packed['rows']}>"
    assert repr(dataset.epoch(2)).endswith(", epoch 2 of seed 42>")
    packtool.pack(packed["rows"].with_name("store"), tmp_path / "b", strategy="buckets", buckets=(16, 64))
    sizes = {length: len(rows) for length, rows in bucketed(tmp_path / "b").buckets.items()}
    assert f"no batches, rows: {sizes[16]} of 16, {sizes[64]} of 64 tokens, " in repr(packtool.open(tmp_path / "b"))


@pytest.mark.parametrize("drop", [False, True])
def test_batches_are_items(packed: dict[str, Path], tmp_path: Path, drop: bool) -> None:
    packtool.pack(packed["rows"].with_name("store"), tmp_path / "packed", strategy="buckets", buckets=(16, 32, 64))
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
    largest = opened(packed["rows"]).manifest.tokenizer.vocab_size - 1
    with pytest.raises(UsageError, match=rf"dtype: \S+ does not hold token ids up to {largest}\. Give int64"):
        opened(packed["rows"], dtype=dtype)


def test_tokens_of_another_dtype_are_copies(packed: dict[str, Path]) -> None:
    stored = opened(packed["rows"])
    assert opened(packed["rows"], dtype="uint16")[0].dtype == stored[0].dtype
    for dtype in ("int32", "int64", np.uint32):
        wide = opened(packed["rows"], dtype=dtype)
        assert wide[0].dtype == next(iter(wide)).dtype == dtype
        for index in (0, slice(1, 3), [4, 5]):
            np.testing.assert_array_equal(wide[index], stored[index])
            assert wide[index].flags.writeable


@pytest.mark.parametrize("value", [-1, 1.5, "1", True, 1 << 64])
def test_epochs_and_seeds_that_make_no_sense_are_refused(packed: dict[str, Path], value: Any) -> None:
    dataset = opened(packed["rows"])
    for where, arguments in (("epoch", {"number": value}), ("seed", {"number": 1, "seed": value})):
        with pytest.raises(
            UsageError, match=rf"{where}: {value!r} is out of range\. Give a whole number from 0 to \d+\."
        ):
            dataset.epoch(**arguments)
    assert (dataset.epoch(np.int64(1))[:] == dataset.epoch(1)[:]).all()


def files() -> int:
    """How many files this process has open."""
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def test_shards_are_mapped_when_needed_and_few_at_once(tmp_path: Path) -> None:
    """A thousand shards, without a thousand open files."""
    store = write_store(tmp_path / "store", [16] * (MAPPED + 44), per_shard=100)
    options = {"sequence_length": 16, "shard_tokens": 16, "shuffle": False}
    packtool.pack(store, tmp_path / "p", strategy="concat", **options)
    before = files()
    dataset = opened(tmp_path / "p")
    assert files() == before
    assert len(dataset[:]) == MAPPED + 44
    assert files() - before <= MAPPED
