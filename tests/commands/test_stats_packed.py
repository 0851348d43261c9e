"""`stats` of packed datasets, against the report beside them and a count on the written shards."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import packtool
from packtool.formats.packed import PackedDataset
from packtool.report.packed import read_report
from packtool.report.page import page
from tests.commands.counted import as_json, count_by_hand, make_store


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return make_store(tmp_path / "store", np.random.default_rng(5).integers(2, 90, 300))


@pytest.mark.parametrize("strategy", ["concat", "padding"])
def test_of_a_packed_dataset_equals_the_report_beside_it(store: Path, tmp_path: Path, strategy: str) -> None:
    packtool.pack(store, tmp_path / "packed", strategy=strategy, sequence_length=32)
    report = packtool.stats(tmp_path / "packed")
    written = json.loads((tmp_path / "packed" / "report.json").read_bytes())
    assert [source.name for source in report.sources] == [store.name]
    assert unnamed(report).items() >= written.items()


def unnamed(report: Any) -> dict[str, Any]:
    """A report without the names of its sources, as `report.json` has it."""
    found: dict[str, Any] = as_json(report)
    return {**found, "sources": [{**source, "name": None} for source in found["sources"]]}


def test_counts_batches(store: Path, tmp_path: Path) -> None:
    packtool.pack(store, tmp_path / "packed", strategy="concat", sequence_length=32)
    report = packtool.stats(tmp_path / "packed", batch_size=7)
    assert report.metrics.steps_per_epoch == -(-report.metrics.rows // 7)
    assert report.mixing[0].batch_size == 7


def test_without_segments_the_ledger_remains(store: Path, tmp_path: Path) -> None:
    packtool.pack(store, tmp_path / "packed", strategy="concat", sequence_length=32, segments=False)
    report = packtool.stats(tmp_path / "packed")
    assert report.metrics is None
    assert report.ledger.rows > 0


@pytest.mark.parametrize(
    "options",
    [
        {"strategy": "concat", "sequence_length": 16, "atom_size": 4},
        {"strategy": "concat", "sequence_length": 16, "atom_size": 64},
        {"strategy": "concat", "sequence_length": 16, "atom_size": 2, "remainder": "drop"},
        {"strategy": "padding", "sequence_length": 16, "atom_size": 4},
        {"strategy": "padding", "sequence_length": 16, "atom_size": 32},
        {"strategy": "seamless", "sequence_length": 16, "extra_capacity": 3, "remainder": "drop"},
        {"strategy": "decompose", "sequence_length": 16, "min_bucket": 4},
        {"strategy": "bfd-extra", "sequence_length": 16, "extra_capacity": 5, "window_tokens": 500},
    ],
)
def test_figures_are_those_of_the_shards(store: Path, tmp_path: Path, options: dict[str, Any]) -> None:
    lengths = np.random.default_rng(5).integers(2, 90, 300)
    packtool.pack(store, tmp_path / "packed", **options)
    report = packtool.stats(tmp_path / "packed")
    count_by_hand(tmp_path / "packed", lengths, report)
    assert (
        unnamed(report).items()
        >= as_json(read_report(tmp_path / "packed", PackedDataset(tmp_path / "packed").manifest)).items()
    )


def test_rows_of_each_step_are_those_of_the_plan(store: Path, tmp_path: Path) -> None:
    packtool.pack(store, tmp_path / "packed", strategy="seamless", sequence_length=16)
    packtool.shuffle(tmp_path / "packed", tmp_path / "shuffled", seed=3)
    for name in ("packed", "shuffled"):
        report = packtool.stats(tmp_path / name)
        assert list(report.stages) == ["overlapping", "whole", "bins", "joined"]
        assert sum(report.stages.values()) == report.ledger.rows
        assert all(report.stages.values())
        assert f"<td>{report.stages['overlapping']:,}</td>" in re.sub(r"<td [^>]*>", "<td>", page(report))
        assert "of bins below a row, joined and cut" in page(report)
    packtool.pack(store, tmp_path / "plain", strategy="concat", sequence_length=16)
    assert packtool.stats(tmp_path / "plain").stages is msgspec.UNSET


def test_of_a_partial_shuffle(store: Path, tmp_path: Path) -> None:
    packtool.shuffle(store, tmp_path / "rows", method="partial", batch_size=4, sequence_length=16)
    report = packtool.stats(tmp_path / "rows")
    count_by_hand(tmp_path / "rows", np.random.default_rng(5).integers(2, 90, 300), report)
    assert report.mixing[0].batch_size == 4


def test_of_a_bucket_shuffle(store: Path, tmp_path: Path) -> None:
    twin = shutil.copytree(store, tmp_path / "twin")
    packtool.pack([store, twin], tmp_path / "packed", strategy="buckets", buckets=[32, 128])
    packtool.shuffle(tmp_path / "packed", tmp_path / "rows", method="bucket", batch_tokens=512)
    report = packtool.stats(tmp_path / "rows")
    assert [m.batch_size for m in report.mixing] == [512 // 32, 512 // 128]
    assert report.mixing[0].sources.mean > 1
    assert sum(b.row_share for b in report.buckets) == pytest.approx(1)
    count_by_hand(tmp_path / "rows", np.tile(np.random.default_rng(5).integers(2, 90, 300), 2), report)
