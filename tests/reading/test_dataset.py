"""The reader: one interface for rows and for batches, in any order, in any process."""

from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import packtool
from packtool.errors import DataError, UsageError
from packtool.reading import BucketDataset, Dataset
from packtool.reading.shards import MAPPED
from packtool.reading.stream import Stream
from packtool.storage.packed import SEGMENT
from tests.stores import write_store

LENGTHS = np.random.default_rng(3).integers(1, 90, 150).tolist()

KINDS: dict[str, dict[str, Any]] = {
    "rows": {"strategy": "bfd", "sequence_length": 32},
    "small-atoms": {"strategy": "concat", "sequence_length": 32, "atom_size": 8},
    "large-atoms": {"strategy": "concat", "sequence_length": 32, "atom_size": 96},
    "varying-atoms": {"strategy": "padding", "sequence_length": 32, "atom_size": 96},
    "joined-padding": {"strategy": "padding", "sequence_length": 32, "atom_size": 8},
    "repeats": {"strategy": "seamless", "sequence_length": 32},
}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_store(tmp_path_factory.mktemp("reading") / "store", LENGTHS, per_shard=40)


@pytest.fixture(scope="module")
def packed(store: Path) -> dict[str, Path]:
    paths = {name: store.parent / name for name in KINDS}
    for name, path in paths.items():
        packtool.pack(store, path, shard_tokens=1024, **KINDS[name])
    return paths


def opened(path: Path, **options: Any) -> Dataset:
    dataset = packtool.open(path, **options)
    assert isinstance(dataset, Dataset)
    return dataset


def plain(path: Path) -> np.ndarray[Any, Any]:
    """All rows, by NumPy alone."""
    return np.concatenate([np.load(file) for file in sorted(path.glob("tokens-*.npy"))])


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
    for index in (1.5, "rows", [[0, 1]], [0.5], None):
        with pytest.raises(TypeError, match="rows are chosen by an integer"):
            dataset[index]  # type: ignore[index]


def test_a_row_and_its_segments_are_views(packed: dict[str, Path]) -> None:
    dataset = opened(packed["rows"])
    for array in (dataset[3], dataset[2:6], dataset.segments(3)):
        assert not array.flags.owndata
        assert not array.flags.writeable
    assert dataset.segments(3).dtype == SEGMENT


def test_tokens_of_another_dtype_are_copies(packed: dict[str, Path]) -> None:
    stored, wide = opened(packed["rows"]), opened(packed["rows"], dtype="int64")
    assert stored[0].dtype == np.uint16
    for index in (0, slice(1, 3), [4, 5]):
        assert wide[index].dtype == np.int64
        assert wide[index].flags.writeable
        np.testing.assert_array_equal(wide[index], stored[index])
    assert next(iter(wide)).dtype == np.int64


@pytest.mark.parametrize("kind", ["rows", "small-atoms"])
def test_it_pickles_by_path_and_order(
    packed: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    packtool.shuffle(packed[kind], tmp_path / "order", epoch=1, order_only=True)
    monkeypatch.chdir(tmp_path)
    relative = os.path.relpath(packed[kind])
    for dataset in (
        opened(Path(relative), dtype="int64"),
        opened(Path(relative), order="order"),
        opened(Path(relative)).epoch(2, seed=7),
    ):
        list(dataset)
        data = pickle.dumps(dataset)
        assert len(data) < 1000
        with monkeypatch.context() as elsewhere:
            elsewhere.chdir("/")
            again = pickle.loads(data)
            np.testing.assert_array_equal(np.stack(list(again)), np.stack(list(dataset)))
        assert again[0].dtype == dataset[0].dtype
        assert repr(again) == repr(dataset)


def test_an_epoch_has_the_seed_that_the_dataset_was_packed_with(store: Path, tmp_path: Path) -> None:
    packtool.pack(store, tmp_path / "rows", strategy="concat", sequence_length=32, seed=7)
    packtool.shuffle(tmp_path / "rows", tmp_path / "written", epoch=1)
    computed = opened(tmp_path / "rows").epoch(1)
    np.testing.assert_array_equal(computed[:], plain(tmp_path / "written"))
    assert repr(computed).endswith(", epoch 1 of seed 7>")
    stream = Stream(tmp_path / "rows", epochs=2)
    np.testing.assert_array_equal(stream.batch([stream.items])["input_ids"][0], computed[0])

    packtool.pack(store, tmp_path / "several", strategy="buckets", buckets=(16, 64), seed=7)
    packtool.shuffle(tmp_path / "several", tmp_path / "batches", method="bucket", batch_tokens=128, epoch=2)
    written, made = bucketed(tmp_path / "batches"), bucketed(tmp_path / "several").epoch(2, batch_tokens=128)
    assert [made[n].tolist() for n in range(len(made))] == [written[n].tolist() for n in range(len(written))]


def test_numpy_msgspec_and_xxhash_are_enough(packed: dict[str, Path], tmp_path: Path) -> None:
    """A trainer's workers load nothing heavier, whatever they read."""
    packtool.shuffle(packed["rows"], tmp_path / "order", epoch=1, order_only=True)
    code = """
import sys
for name in ("pyarrow", "tokenizers", "gigatoken", "scipy", "tqdm", "rich", "typer"):
    sys.modules[name] = None  # as if it were not installed
import packtool
from packtool.reading.sampler import GlobalBatches
from packtool.reading.stream import Stream
for dataset in (packtool.open(sys.argv[1]), packtool.open(sys.argv[1], order=sys.argv[2])):
    for each in (dataset, dataset.epoch(2)):
        each[3], each[[1, 2]], each[:], each.segments(0), each.batch([0, 1])
for keys in GlobalBatches(stream := Stream(sys.argv[1], epochs=2), 4):
    stream.batch(keys)
"""
    done = subprocess.run(
        [sys.executable, "-c", code, packed["rows"], tmp_path / "order"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_what_it_says_it_is(packed: dict[str, Path], tmp_path: Path, store: Path) -> None:
    dataset = opened(packed["rows"])
    assert repr(dataset) == f"<packtool dataset: {len(dataset)} rows of 32 tokens, {packed['rows']}>"
    assert repr(dataset.epoch(2)).endswith(", epoch 2 of seed 42>")
    packtool.shuffle(packed["rows"], tmp_path / "order", order_only=True)
    assert repr(opened(packed["rows"], order=tmp_path / "order")).endswith(f", in the order of {tmp_path / 'order'}>")
    packtool.pack(store, tmp_path / "b", strategy="buckets", buckets=(16, 64))
    sizes = {length: len(rows) for length, rows in bucketed(tmp_path / "b").buckets.items()}
    assert f"no batches, rows: {sizes[16]} of 16, {sizes[64]} of 64 tokens, " in repr(packtool.open(tmp_path / "b"))


def bucketed(path: Path, **options: Any) -> BucketDataset:
    dataset = packtool.open(path, **options)
    assert isinstance(dataset, BucketDataset)
    return dataset


@pytest.mark.parametrize("drop", [False, True])
def test_batches_are_items(store: Path, tmp_path: Path, drop: bool) -> None:
    packtool.pack(store, tmp_path / "packed", strategy="buckets", buckets=(16, 32, 64))
    remainder = "drop" if drop else "pad"
    made = {"method": "bucket", "batch_tokens": 192, "remainder": remainder, "epoch": 2}
    packtool.shuffle(tmp_path / "packed", tmp_path / "rows", **made)
    packtool.shuffle(tmp_path / "packed", tmp_path / "order", order_only=True, **made)
    rows = bucketed(tmp_path / "rows")
    others = [
        bucketed(tmp_path / "packed", order=tmp_path / "order"),
        bucketed(tmp_path / "packed").epoch(2, batch_tokens=192, drop_rest=drop),
        pickle.loads(pickle.dumps(bucketed(tmp_path / "rows").epoch(2, drop_rest=drop))),
    ]
    for other in others:
        assert len(other) == len(rows)
        for number in range(len(rows)):
            np.testing.assert_array_equal(rows[number], other[number])
            for mine, theirs in zip(rows.segments(number), other.segments(number), strict=True):
                np.testing.assert_array_equal(mine, theirs)
            for name, value in rows.batch(number).items():
                np.testing.assert_array_equal(value, other.batch(number)[name])  # type: ignore[literal-required]
    assert [batch.shape for batch in rows[-2:]] == [rows[-2].shape, rows[-1].shape]
    assert [batch.shape for batch in rows[[0, 1]]] == [rows[0].shape, rows[1].shape]
    assert [batch.shape for batch in rows] == [rows[number].shape for number in range(len(rows))]
    with pytest.raises(IndexError, match=f"batch {len(rows)} of {len(rows)}"):
        rows[len(rows)]
    with pytest.raises(UsageError, match="batch_tokens: rows of several lengths need batches"):
        bucketed(tmp_path / "packed").epoch(2)
    with pytest.raises(UsageError, match=r"the dataset has no batches\. Make them"):
        len(bucketed(tmp_path / "packed"))


def test_a_missing_or_short_shard_is_found_on_opening(packed: dict[str, Path], tmp_path: Path) -> None:
    shutil.copytree(packed["rows"], tmp_path / "p")
    file = tmp_path / "p" / "tokens-00001.npy"
    whole = file.read_bytes()
    file.write_bytes(whole[:-2])
    with pytest.raises(DataError, match=rf"tokens-00001.npy: has {len(whole) - 2} bytes, but the manifest says"):
        packtool.open(tmp_path / "p")
    file.unlink()
    with pytest.raises(DataError, match=r"tokens-00001.npy: named in the manifest, but not there"):
        packtool.open(tmp_path / "p")


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
