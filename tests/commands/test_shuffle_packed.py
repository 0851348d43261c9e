"""`shuffle` of packed datasets: their atoms, in rows of one length or several."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import packtool
from packtool.errors import UsageError
from packtool.formats.packed import PackedDataset
from packtool.formats.token_store import TokenStore
from packtool.reading import BucketDataset
from tests.commands.rebuilt import rebuilt
from tests.stores import contents, write_store

LENGTHS = np.random.default_rng(0).integers(1, 90, 200).tolist()
BUCKETS: list[dict[str, Any]] = [
    {"strategy": "buckets", "buckets": (16, 32, 64)},
    {"strategy": "length-buckets", "buckets": (16, 32, 64)},
    {"strategy": "decompose", "sequence_length": 64, "min_bucket": 4},
]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_store(tmp_path_factory.mktemp("shuffle") / "store", LENGTHS, per_shard=40)


@pytest.mark.parametrize(("packed_with", "remainder"), [(16, "pad"), (64, "drop"), (192, "pad")])
@pytest.mark.parametrize("atom_size", [1, 32, 64, 320])
def test_concat_takes_any_atom_size(
    store: Path, tmp_path: Path, packed_with: int, atom_size: int, remainder: str
) -> None:
    options: dict[str, Any] = {"strategy": "concat", "sequence_length": 64, "remainder": remainder}
    packtool.pack(store, tmp_path / "corpus", shuffle=False, atom_size=packed_with, **options)
    packtool.shuffle(tmp_path / "corpus", tmp_path / "shuffled", atom_size=atom_size)
    packtool.pack(store, tmp_path / "packed", atom_size=atom_size, **options)
    assert contents(tmp_path / "shuffled") == contents(tmp_path / "packed")


@pytest.mark.parametrize(
    ("strategy", "atom_size"), [("concat", 16), ("concat", 128), ("padding", 16), ("padding", 128)]
)
def test_the_same_atoms_in_another_order(store: Path, tmp_path: Path, strategy: str, atom_size: int) -> None:
    packtool.pack(store, tmp_path / "corpus", strategy=strategy, sequence_length=64, atom_size=atom_size, shuffle=False)
    packtool.shuffle(tmp_path / "corpus", tmp_path / "a", seed=42)
    packtool.shuffle(tmp_path / "corpus", tmp_path / "b", seed=43)
    packtool.shuffle(tmp_path / "corpus", tmp_path / "c", seed=42, epoch=1)
    atoms = [_atoms(PackedDataset(tmp_path / name), atom_size) for name in ("corpus", "a", "b", "c")]
    assert len({tuple(each) for each in atoms}) == 4
    assert len({frozenset(Counter(each).items()) for each in atoms}) == 1
    assert rebuilt(PackedDataset(tmp_path / "c"), TokenStore(store)) >= sum(LENGTHS) - len(LENGTHS)


@pytest.mark.parametrize("options", BUCKETS, ids=lambda options: options["strategy"])
def test_several_buckets_share_one_permutation(store: Path, tmp_path: Path, options: dict[str, Any]) -> None:
    packtool.pack(store, tmp_path / "packed", seed=7, **options)
    packtool.pack(store, tmp_path / "corpus", shuffle=False, **options)
    packtool.shuffle(tmp_path / "corpus", tmp_path / "shuffled", seed=7)
    assert contents(tmp_path / "shuffled") == contents(tmp_path / "packed")
    rows = packtool.open(tmp_path / "shuffled")
    assert isinstance(rows, BucketDataset)
    with pytest.raises(UsageError, match=r"has no batches\. Make them with packtool shuffle --method bucket"):
        rows[0]


@pytest.mark.parametrize("remainder", [None, "pad", "drop"])
@pytest.mark.parametrize("options", BUCKETS, ids=lambda options: options["strategy"])
def test_bucket(store: Path, tmp_path: Path, options: dict[str, Any], remainder: str | None) -> None:
    packtool.pack(store, tmp_path / "packed", **options)
    shuffle: dict[str, Any] = {"method": "bucket", "batch_tokens": 192, "remainder": remainder, "epoch": 2}
    result = packtool.shuffle(tmp_path / "packed", tmp_path / "rows", **shuffle)
    packtool.shuffle(tmp_path / "packed", tmp_path / "atoms", epoch=2)
    assert packtool.verify(tmp_path / "rows").problems == []
    rows, atoms = packtool.open(tmp_path / "rows"), packtool.open(tmp_path / "atoms")
    ordered = packtool.open(tmp_path / "packed")
    assert isinstance(ordered, BucketDataset)
    ordered = ordered.epoch(2, batch_tokens=192, drop_rest=remainder == "drop")
    assert isinstance(rows, BucketDataset)
    assert isinstance(atoms, BucketDataset)
    left = {length: len(bucket) for length, bucket in rows.buckets.items()}
    for number, (bucket, _, count) in enumerate(rows.batches.tolist()):
        batch = rows[number]
        assert batch.shape == (count, bucket)
        assert batch.size == 192 or (remainder != "drop" and batch.size < 192)
        np.testing.assert_array_equal(batch, ordered[number])
        left[bucket] -= count
    for length, bucket in rows.buckets.items():
        np.testing.assert_array_equal(bucket.tokens(0, len(bucket)), atoms.buckets[length].tokens(0, len(bucket)))
    counted = result.report.shuffle
    assert counted is not None
    if remainder == "drop":
        assert counted.unbatched_rows == sum(left.values()) > 0
        assert counted.unbatched_tokens == sum(length * rows for length, rows in left.items())
    else:
        assert not any(left.values())
        assert counted.unbatched_rows is None
    assert rebuilt(PackedDataset(tmp_path / "rows"), TokenStore(store)) > 0


def test_batch_tokens_must_fit_every_bucket(store: Path, tmp_path: Path) -> None:
    packtool.pack(store, tmp_path / "packed", **BUCKETS[0])
    with pytest.raises(UsageError, match="--batch-tokens: 96 tokens is not a whole number of rows of 64"):
        packtool.shuffle(tmp_path / "packed", tmp_path / "out", method="bucket", batch_tokens=96)
    with pytest.raises(UsageError, match=r"rows of several lengths move one by one\. Leave --atom-size out"):
        packtool.shuffle(tmp_path / "packed", tmp_path / "out", atom_size=32)


def _atoms(dataset: PackedDataset, atom_size: int) -> list[bytes]:
    """The tokens of each atom."""
    bucket = dataset.buckets[0]
    tokens = bucket.tokens(0, bucket.rows).reshape(-1)
    offsets = bucket.atom_offsets()
    ends = np.arange(0, len(tokens) + atom_size, atom_size) if offsets is None else offsets * 64
    return [tokens[a:b].tobytes() for a, b in pairwise(ends) if a < len(tokens)]
