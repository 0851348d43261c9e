"""Packing anew for every epoch: documents in another order, rows with other neighbours, nothing lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import packtool
from packtool.errors import UsageError
from packtool.formats.packed import PackedDataset
from packtool.reading import Dataset
from tests.stores import write_store
from tests.test_golden import LENGTHS

FILLS_BINS = {"strategy": "bfd", "sequence_length": 64}


def neighbours(path: Path) -> set[frozenset[int]]:
    """The documents of each row that has several."""
    found = (set(table["document"][table["document"] >= 0].tolist()) for table in rows_of(PackedDataset(path)))
    return {frozenset(documents) for documents in found if len(documents) > 1}


def rows_of(dataset: PackedDataset) -> list[Any]:
    return [bucket.table(row) for bucket in dataset.buckets for row in range(bucket.rows)]


@pytest.mark.parametrize("strategy", ["concat", "bfd", "seamless", "first-fit-shuffle"])
def test_rows_have_other_neighbours_in_each_epoch(tmp_path: Path, strategy: str) -> None:
    store = write_store(tmp_path / "store", LENGTHS, per_shard=40)
    options = {"strategy": strategy, "sequence_length": 256, "mix_rows": False if strategy == "bfd" else None}
    options = {name: value for name, value in options.items() if value is not None}
    for epoch in range(3):
        packtool.pack(store, tmp_path / f"{epoch}", **options, epoch=epoch)
    found = [neighbours(tmp_path / f"{epoch}") for epoch in range(3)]
    assert len(found[0] & found[1]) < len(found[0]) / 2
    assert len(found[1] & found[2]) < len(found[1]) / 2
    assert PackedDataset(tmp_path / "2").manifest.options["epoch"] == 2
    assert "epoch" not in PackedDataset(tmp_path / "0").manifest.options


def test_tokens_that_are_written_are_not_packed_anew(tmp_path: Path) -> None:
    store = write_store(tmp_path / "store", LENGTHS, per_shard=40)
    packtool.pack(store, tmp_path / "whole", **FILLS_BINS)
    dataset = packtool.open(tmp_path / "whole")
    assert isinstance(dataset, Dataset)
    with pytest.raises(UsageError, match="written with their tokens, so they can't be packed anew"):
        dataset.epoch(1, repack=True)
    packtool.shuffle(store, tmp_path / "partial", method="partial", sequence_length=64, batch_size=4, index_only=True)
    partial = packtool.open(tmp_path / "partial")
    assert isinstance(partial, Dataset)
    with pytest.raises(UsageError, match="partial shuffle, which packs every epoch by itself"):
        partial.epoch(1, repack=True)
