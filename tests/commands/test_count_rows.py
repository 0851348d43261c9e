"""Rows that tasks count amount to what one process counts; shares of stores in batches, against a count by hand."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import packtool
from packtool.commands import count_rows
from packtool.engines import Engine, Processes, Threads, Worker
from packtool.engines.engine import NO_OPTIONS, RunOptions
from packtool.formats.packed import PackedDataset
from packtool.planning.metrics.mixing import PairDistanceCounter
from packtool.planning.metrics.tally import Tally
from tests.making import Make


@pytest.fixture
def stores(make: Make) -> list[Path]:
    place = make({"web": [9, 3, 14, 40] * 60, "wiki": [5, 70] * 30})
    return [place / "web", place / "wiki"]


@pytest.mark.parametrize("steps", [1, 3, 100])
def test_parts_in_any_order(stores: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps: int) -> None:
    packtool.pack(stores, tmp_path / "packed", strategy="seamless", sequence_length=32)
    dataset = PackedDataset(tmp_path / "packed")
    [bucket] = dataset.buckets
    tasks_sent = []

    class Backwards(Processes):
        def run(self, function: Any, tasks: Any, options: RunOptions = NO_OPTIONS) -> Any:
            assert options.work.exists()
            tasks_sent.append(len(tasks))
            yield from ((number, function(tasks[number], Worker())) for number in reversed(range(len(tasks))))

    monkeypatch.setattr(count_rows, "STEPS", steps)
    monkeypatch.setattr(count_rows, "BATCH_TOKENS", 1)

    def counted(engine: Engine) -> tuple[Any, Any]:
        tally = Tally(dataset.lengths(), 32)
        mixing = PairDistanceCounter(dataset.manifest.store_documents, 32, 4)
        advanced: list[int] = []
        count_rows.count_rows(bucket, tally, mixing, engine, advanced.append)
        assert sum(advanced) == (0 if tasks_sent else bucket.rows)  # those workers report to nobody
        return tally.counts(), mixing.result()

    expected = counted(Threads(1))
    assert counted(Backwards(2)) == expected
    assert tasks_sent == [-(-bucket.rows // (4 * steps))]


@pytest.mark.parametrize(
    "options",
    [
        {"strategy": "bfd", "sequence_length": 32},
        {"strategy": "concat", "sequence_length": 16, "mix": ["web=0.5x", "wiki=2x"]},
        {"strategy": "buckets", "buckets": (16, 64), "shard_tokens": 512},
        {"strategy": "bfd", "sequence_length": 2048},  # fewer rows than a batch
    ],
)
def test_shares_of_batches_are_those_of_their_rows(stores: list[Path], tmp_path: Path, options: Any) -> None:
    report = packtool.pack(stores, tmp_path / "p", **options).report
    dataset = PackedDataset(tmp_path / "p")
    first_of_wiki = dataset.manifest.store_documents[0]
    longest = max(bucket.sequence_length for bucket in dataset.buckets)
    assert len(report.source_mix) == len(dataset.buckets)
    for bucket, mix in zip(dataset.buckets, report.source_mix, strict=True):
        assert mix.batch_size == 64 * longest // bucket.sequence_length
        whole, total = [], Counter[bool]()
        for first in range(0, bucket.rows, mix.batch_size):
            held = Counter[bool]()
            rows = bucket.segments.between(first, min(first + mix.batch_size, bucket.rows))
            for document, length in zip(rows.document.tolist(), rows.length.tolist(), strict=True):
                if document >= 0:
                    held[document >= first_of_wiki] += length
            total += held
            if first + mix.batch_size <= bucket.rows or bucket.rows < mix.batch_size:
                whole.append([held[False] / held.total(), held[True] / held.total()])
        shares = np.array(whole)
        for number, source in enumerate(mix.sources):
            assert source.tokens == total[bool(number)]
            assert source.share == pytest.approx(total[bool(number)] / total.total())
            assert (source.min, source.max) == pytest.approx((shares[:, number].min(), shares[:, number].max()))
            assert source.deviation == pytest.approx(shares[:, number].std(), abs=1e-7)
