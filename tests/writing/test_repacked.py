"""Packing anew for every epoch: documents in another order, rows with other neighbours, nothing lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import packtool
from packtool.errors import UsageError
from packtool.formats.packed import PackedDataset
from packtool.reading import Dataset
from tests.making import Make
from tests.test_golden import LENGTHS


def neighbours(path: Path) -> set[frozenset[int]]:
    """The documents of each row that has several."""
    (bucket,) = PackedDataset(path).buckets
    rows = [bucket.table(row)["document"].tolist() for row in range(bucket.rows)]
    found = [frozenset(document for document in row if document >= 0) for row in rows]
    return {documents for documents in found if len(documents) > 1}


@pytest.mark.parametrize("strategy", ["concat", "bfd", "seamless", "first-fit-shuffle"])
def test_rows_have_other_neighbours_in_each_epoch(make: Make, strategy: str) -> None:
    options: dict[str, Any] = {"strategy": strategy, "sequence_length": 256}
    if strategy == "bfd":
        options["mix_rows"] = False
    place = make(LENGTHS, {"per_shard": 40}, **{str(epoch): {**options, "epoch": epoch} for epoch in range(3)})
    found = [neighbours(place / str(epoch)) for epoch in range(3)]
    assert len(found[0] & found[1]) < len(found[0]) / 2
    assert len(found[1] & found[2]) < len(found[1]) / 2
    assert PackedDataset(place / "2").manifest.options["epoch"] == 2
    assert "epoch" not in PackedDataset(place / "0").manifest.options


def test_rows_that_can_not_be_packed_anew(make: Make, tmp_path: Path) -> None:
    make(LENGTHS, {"per_shard": 40}, at=tmp_path, whole={"strategy": "bfd", "sequence_length": 64})
    options: dict[str, Any] = {"method": "partial", "sequence_length": 64, "batch_size": 4, "index_only": True}
    packtool.shuffle(tmp_path / "store", tmp_path / "lanes", **options)
    for name, said in (
        ("whole", "written with their tokens, so they can't be packed anew"),
        ("lanes", "partial shuffle, which packs every epoch by itself"),
    ):
        dataset = packtool.open(tmp_path / name)
        assert isinstance(dataset, Dataset)
        with pytest.raises(UsageError, match=said):
            dataset.epoch(1, repack=True)
