"""Rows that tasks count amount to what one process counts, to the last digit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import packtool
from packtool.commands import count_rows
from packtool.engines import Engine, Processes, Threads, Worker
from packtool.formats.packed import PackedDataset
from packtool.planning.metrics.mixing import Mixing
from packtool.planning.metrics.tally import Tally
from tests.stores import write_store


@pytest.mark.parametrize("steps", [1, 3, 100])
def test_parts_in_any_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps: int) -> None:
    stores = [write_store(tmp_path / "a", [9, 3, 14, 40] * 60), write_store(tmp_path / "b", [5, 70] * 30)]
    packtool.pack(stores, tmp_path / "packed", strategy="seamless", sequence_length=32)
    dataset = PackedDataset(tmp_path / "packed")
    [bucket] = dataset.buckets
    tasks_sent = []

    class Backwards(Processes):
        def run(self, function: Any, tasks: Any, *, work: Path | None = None, **_: Any) -> Any:
            assert work.exists()
            tasks_sent.append(len(tasks))
            yield from ((number, function(tasks[number], Worker())) for number in reversed(range(len(tasks))))

    monkeypatch.setattr(count_rows, "STEPS", steps)
    monkeypatch.setattr(count_rows, "BATCH_TOKENS", 1)

    def counted(engine: Engine) -> tuple[Any, Any]:
        tally = Tally(dataset.lengths(), 32)
        mixing = Mixing(dataset.manifest.store_documents, 32, 4)
        advanced: list[int] = []
        count_rows.count_rows(bucket, tally, mixing, engine, advanced.append)
        assert sum(advanced) == (0 if tasks_sent else bucket.rows)  # those workers report to nobody
        return tally.counts(), mixing.result()

    expected = counted(Threads(1))
    assert counted(Backwards(2)) == expected
    assert tasks_sent == [-(-bucket.rows // (4 * steps))]
