"""`stats` of stores and packed datasets, against what was packed, and a count on the written shards."""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

import packtool
from packtool.errors import DataError, UsageError
from packtool.formats.packed import PackedDataset
from packtool.planning.packing import STRATEGIES
from packtool.report.compare import candidates
from packtool.report.dataset_report import read_report
from packtool.report.page import page
from tests.commands.counted import as_json, count_by_hand
from tests.examples import examples
from tests.stores import write_store

LENGTHS = np.random.default_rng(5).integers(2, 90, 300)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return write_store(tmp_path / "store", LENGTHS.tolist())


def test_of_a_store(store: Path) -> None:
    report = packtool.stats(store)
    assert report.kind == "store"
    assert report.lengths.documents == 300
    assert report.lengths.total == report.counts["tokens"]


def test_several_paths_must_be_stores_and_the_one_that_is_not_is_named(store: Path, tmp_path: Path) -> None:
    packtool.pack(store, tmp_path / "packed", strategy="concat", sequence_length=32)
    for paths in ([tmp_path / "packed", store], [store, tmp_path / "packed"]):
        with pytest.raises(UsageError, match="packed: only token stores can be measured together"):
            packtool.stats(paths)


def test_refuses_to_compare_on_a_packed_dataset(store: Path, tmp_path: Path) -> None:
    packtool.pack(store, tmp_path / "packed", strategy="concat", sequence_length=32)
    with pytest.raises(UsageError, match="a packed dataset, but strategies are compared on documents"):
        packtool.stats(tmp_path / "packed", compare="all", sequence_length=32)
    said = r"^mix: has no effect on packed datasets\. Leave it out: this dataset is packed already\.$"
    with pytest.raises(UsageError, match=said) as caught:
        packtool.stats(tmp_path / "packed", mix={"store": 1})
    assert caught.value.code == "option-not-taken"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 0}, r"batch_size: 0 is out of range\. Give 1 or more\."),
        ({"compare": "tetris"}, r"compare: there is no strategy 'tetris'\. Choose one of concat, padding.*, all\."),
        ({"compare": "concat"}, r"sequence_length: the strategy concat needs the length of a row\. Give seq"),
        ({"sequence_length": 32}, r"^sequence_length: has no effect without compare\. Add compare=\"all\"\.$"),
        ({"compare": "concat", "sequence_length": 1}, r"sequence_length: 1 is out of range\."),
        (
            {"html": "nowhere/page.html"},
            r"html: nowhere/page\.html can't be written: .*\. Give a file in an existing",
        ),
    ],
)
def test_refuses_what_makes_no_sense(store: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        packtool.stats(store, **options)


def test_a_page_does_not_take_the_place_of_a_shard(tmp_path: Path) -> None:
    store = write_store(tmp_path / "store", [3, 4])
    before = (store / "tokens-00000.npy").read_bytes()
    with pytest.raises(UsageError, match=r"html: '.*tokens-00000.npy' is not the name of a page, and what lies"):
        packtool.stats(store, html=store / "tokens-00000.npy")
    assert (store / "tokens-00000.npy").read_bytes() == before


@pytest.mark.parametrize("kind", ["rows", "buckets"])
def test_a_dataset_without_manifest_is_no_corpus(store: Path, tmp_path: Path, kind: str) -> None:
    strategy = "decompose" if kind == "buckets" else "concat"
    made = tmp_path / "made"
    packtool.pack(store, made, strategy=strategy, sequence_length=8)
    if kind == "buckets":
        packtool.shuffle(made, tmp_path / "buckets", method="bucket", batch_tokens=16)
        made = tmp_path / "buckets"
    (made / "manifest.json").unlink()
    with pytest.raises(DataError, match=r"run.json without manifest.json: a dataset that lost it"):
        packtool.stats(made)


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
    packtool.pack(store, tmp_path / "packed", **options)
    report = packtool.stats(tmp_path / "packed")
    count_by_hand(tmp_path / "packed", LENGTHS, report)
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
    assert packtool.stats(tmp_path / "plain").stages is None


def test_of_a_partial_shuffle(store: Path, tmp_path: Path) -> None:
    packtool.shuffle(store, tmp_path / "rows", method="partial", batch_size=4, sequence_length=16)
    report = packtool.stats(tmp_path / "rows")
    count_by_hand(tmp_path / "rows", LENGTHS, report)
    assert report.mixing[0].batch_size == 4


def test_of_a_bucket_shuffle(store: Path, tmp_path: Path) -> None:
    twin = shutil.copytree(store, tmp_path / "twin")
    packtool.pack([store, twin], tmp_path / "packed", strategy="buckets", buckets=[32, 128])
    packtool.shuffle(tmp_path / "packed", tmp_path / "rows", method="bucket", batch_tokens=512)
    report = packtool.stats(tmp_path / "rows")
    assert [m.batch_size for m in report.mixing] == [512 // 32, 512 // 128]
    assert report.mixing[0].sources.mean > 1
    assert sum(b.row_share for b in report.buckets) == pytest.approx(1)
    count_by_hand(tmp_path / "rows", np.tile(LENGTHS, 2), report)


@examples(8, HealthCheck.function_scoped_fixture)
@given(data=st.data())
def test_compare_equals_packing_then_measuring(data: st.DataObject, tmp_path: Path) -> None:
    size = data.draw(st.sampled_from([4, 8, 16]))
    lengths = data.draw(st.lists(st.integers(2, 4 * size), min_size=1, max_size=40))
    place = Path(tempfile.mkdtemp(dir=tmp_path))
    store = write_store(place / "store", lengths)
    foreseen = packtool.stats(store, compare="all", sequence_length=size, buckets=[size, 2 * size], batch_size=3)
    tried = candidates(["all"], [size], {"buckets": (size, 2 * size)})
    assert len(tried) == len(foreseen.comparison.entries) == len(STRATEGIES)
    for candidate, entry in zip(tried, foreseen.comparison.entries, strict=True):
        options = {f.name: getattr(candidate.options, f.name) for f in fields(candidate.options)}
        packtool.pack(store, place / entry.strategy, strategy=entry.strategy, **options)
        measured = packtool.stats(place / entry.strategy, batch_size=3)
        if entry.strategy == "seamless":
            assert measured.sliding.texts == entry.metrics.overlapping_documents
        for name in ("ledger", "metrics", "buckets", "documents_per_row"):
            assert getattr(entry, name) == getattr(measured, name), (entry.strategy, name)
        count_by_hand(place / entry.strategy, np.array(lengths), measured)
