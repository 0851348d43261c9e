"""Rows that tasks count amount to what one process counts, to the last digit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import packtool
from packtool import cluster
from packtool.cluster import Cluster
from packtool.commands import count_rows, source_mix
from packtool.metrics import Mixing, Tally
from packtool.storage.packed import PackedDataset
from tests.stores import write_store


@pytest.mark.parametrize("steps", [1, 3, 100])
def test_parts_in_any_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps: int) -> None:
    stores = [write_store(tmp_path / "a", [9, 3, 14, 40] * 60), write_store(tmp_path / "b", [5, 70] * 30)]
    packtool.pack(stores, tmp_path / "packed", strategy="seamless", sequence_length=32)
    dataset = PackedDataset(tmp_path / "packed")
    [bucket] = dataset.buckets
    tasks_sent = []

    def backwards(
        function: Callable[[Any], Any], tasks: Sequence[Any], where: Cluster, *, shared: Path, **_: Any
    ) -> Iterator[tuple[int, Any]]:
        assert shared.exists()
        tasks_sent.append(len(tasks))
        yield from ((number, function(tasks[number])) for number in reversed(range(len(tasks))))

    monkeypatch.setattr(cluster, "run", backwards)
    monkeypatch.setattr(count_rows, "STEPS", steps)
    monkeypatch.setattr(source_mix, "BATCH_TOKENS", 1)

    def counted(where: Cluster | None) -> tuple[Any, Any]:
        tally = Tally(dataset.lengths(), 32)
        mixing = Mixing(dataset.manifest.store_documents, 32, 4)
        count_rows.count_rows(bucket, tally, mixing, where=where)
        return tally.counts(), mixing.result()

    assert counted(Cluster("anywhere", 2, "stats")) == counted(None)
    assert tasks_sent == [-(-bucket.rows // (4 * steps))]
