"""`stats` against what was packed, and against a count on the written shards."""

from __future__ import annotations

import itertools
import json
import tempfile
from collections import Counter
from dataclasses import fields
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import packtool
from packtool.comparing import candidates
from packtool.errors import UsageError
from packtool.packing import STRATEGIES
from packtool.report.packed import read_report
from packtool.report.schema import MeasuredReport
from packtool.storage import manifest as manifests
from packtool.storage.manifest import StoreManifest, TokenizerInfo, TokenShard
from packtool.storage.token_store import write_shard

VOCABULARY = 97


def make_store(path: Path, lengths: NDArray[np.int64], seed: int = 0) -> Path:
    """A token store of random documents of these lengths, EOS (id 0) included."""
    path.mkdir(parents=True)
    tokens = np.random.default_rng(seed).integers(1, VOCABULARY, int(lengths.sum()))
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    tokens[offsets[1:] - 1] = 0
    files = write_shard(path, 0, tokens, offsets, VOCABULARY)
    manifests.write(
        path,
        StoreManifest(
            options={},
            inputs=[],
            tokenizer=TokenizerInfo(sha256="0" * 64, vocab_size=VOCABULARY, eos_id=0, eos_token="</s>"),
            dtype="<u2",
            counts={"documents": len(lengths), "tokens": int(lengths.sum())},
            shards=[TokenShard(*files, 0)],
        ),
    )
    return path


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return make_store(tmp_path / "store", np.random.default_rng(5).integers(2, 90, 300))


def as_json(report: msgspec.Struct) -> dict[str, Any]:
    """A report as its reader in another language sees it."""
    found: dict[str, Any] = json.loads(msgspec.json.encode(report))
    return found


def test_of_a_store(store: Path) -> None:
    report = packtool.stats(store)
    assert report.kind == "store"
    assert report.lengths.documents == 300
    assert report.lengths.total == report.counts["tokens"]


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


def test_refuses_an_empty_batch(store: Path) -> None:
    with pytest.raises(UsageError, match=r"--batch-size: 0 is out of range\. Give 1 or more\."):
        packtool.stats(store, batch_size=0)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_compare_equals_packing_then_measuring(data: st.DataObject, tmp_path: Path) -> None:
    size = data.draw(st.sampled_from([4, 8, 16]))
    lengths = data.draw(st.lists(st.integers(2, 4 * size), min_size=1, max_size=40))
    place = Path(tempfile.mkdtemp(dir=tmp_path))
    store = make_store(place / "store", np.array(lengths))
    foreseen = packtool.stats(store, compare="all", sequence_length=size, buckets=[size, 2 * size], batch_size=3)
    tried = candidates(["all"], [size], [size, 2 * size])
    assert len(tried) == len(foreseen.comparison.entries) == len(STRATEGIES)
    for candidate, entry in zip(tried, foreseen.comparison.entries, strict=True):
        options = {f.name: getattr(candidate.options, f.name) for f in fields(candidate.options)}
        packtool.pack(store, place / entry.strategy, strategy=entry.strategy, **options)
        measured = packtool.stats(place / entry.strategy, batch_size=3)
        if entry.strategy == "seamless":
            (third,) = (s for s in foreseen.comparison.sliding[0].steps if s.max_repetition == 0.3)
            assert measured.sliding == third
            assert third.texts == entry.metrics.overlapping_documents
        for name in ("ledger", "metrics", "buckets", "documents_per_row", "context"):
            assert getattr(entry, name) == getattr(measured, name), (entry.strategy, name)
        count_by_hand(place / entry.strategy, np.array(lengths), measured)


def count_by_hand(path: Path, lengths: NDArray[np.int64], report: MeasuredReport) -> None:
    """Compare a report with a count over the shards as plain arrays, row by row."""
    manifest = json.loads((path / "manifest.json").read_bytes())
    rows = output = padding = text = inserted = 0
    intact: set[int] = set()
    seen: Counter[tuple[int, int]] = Counter()
    per_row = []
    for bucket in manifest["buckets"]:
        for shard in bucket["shards"]:
            base = path / bucket["directory"]
            tokens = np.load(base / shard["tokens"]["name"], mmap_mode="r")
            table = np.load(base / shard["segments"]["name"])
            offsets = np.load(base / shard["segment_offsets"]["name"])
            rows += len(tokens)
            output += tokens.size
            for row, (first, last) in enumerate(itertools.pairwise(offsets)):
                at = 0
                here = set()
                for document, start, length, _ in table[first:last]:
                    piece = tokens[row, at : at + length]
                    at += length
                    if document == -1:
                        padding += len(piece)
                    elif document == -2:
                        inserted += len(piece)
                        assert (piece == 0).all()
                    else:
                        here.add(int(document))
                        end = int(lengths[document]) - 1
                        for i in range(start, start + length):
                            seen[int(document), int(i)] += i < end
                        text += int((piece != 0).sum())
                        if start == 0 and start + length >= end:
                            intact.add(int(document))
                assert at == tokens.shape[1]
                per_row.append(len(here))
    placed = sum(1 for times in seen.values() if times)
    ledger, metrics = report.ledger, report.metrics
    assert (ledger.rows, ledger.output, ledger.padding) == (rows, output, padding)
    assert (ledger.placed, ledger.repeated) == (placed, text - placed)
    assert ledger.eos_inserted == inserted
    assert ledger.dropped == int((lengths - 1).sum()) - placed
    assert metrics.truncated_documents == len(lengths) - len(intact)
    assert metrics.documents_per_row.max == max(per_row, default=0)
    assert metrics.documents_per_row.mean == pytest.approx(sum(per_row) / max(1, len(per_row)))
    overlapping = {document for (document, _), times in seen.items() if times > 1}
    assert metrics.overlapping_documents == len(overlapping)


def test_refuses_to_compare_on_a_packed_dataset(store: Path, tmp_path: Path) -> None:
    packtool.pack(store, tmp_path / "packed", strategy="concat", sequence_length=32)
    with pytest.raises(UsageError, match="a packed dataset, where strategies are compared on documents"):
        packtool.stats(tmp_path / "packed", compare="all", sequence_length=32)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"compare": "tetris"}, r"--compare: there is no strategy 'tetris'\. Choose one of concat, padding.*, all\."),
        ({"compare": "concat"}, r"--sequence-length: the strategy concat needs the length of a row\. Give --seq"),
        ({"sequence_length": 32}, r"--sequence-length: only strategies take this option\. Add --compare all\."),
        ({"compare": "concat", "sequence_length": 1}, r"--sequence-length: 1 is out of range\."),
        (
            {"html": "nowhere/page.html"},
            r"--html: nowhere/page\.html can't be written: .*\. Give a file in an existing",
        ),
    ],
)
def test_refuses_what_makes_no_sense(store: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        packtool.stats(store, **options)


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
    assert unnamed(report).items() >= as_json(read_report(tmp_path / "packed")).items()


@pytest.mark.parametrize("atom_size", [4, 16, 32])
def test_an_order_is_measured_like_the_rows_it_stands_for(store: Path, tmp_path: Path, atom_size: int) -> None:
    lengths = np.random.default_rng(5).integers(2, 90, 300)
    packtool.pack(store, tmp_path / "base", strategy="concat", sequence_length=16, shuffle=False)
    given: dict[str, Any] = {"method": "atom", "atom_size": atom_size, "epoch": 3}
    packtool.shuffle(tmp_path / "base", tmp_path / "rows", **given)
    packtool.shuffle(tmp_path / "base", tmp_path / "order", order_only=True, **given)
    written = packtool.stats(tmp_path / "rows", batch_size=8)
    ordered = packtool.stats(tmp_path / "base", order=tmp_path / "order", batch_size=8)
    count_by_hand(tmp_path / "rows", lengths, written)
    for name in ("metrics", "mixing", "buckets", "documents_per_row", "context", "shuffle"):
        assert getattr(ordered, name) == getattr(written, name)
    assert written.mixing[0].median_distance > packtool.stats(tmp_path / "base").mixing[0].median_distance


def test_of_a_partial_shuffle(store: Path, tmp_path: Path) -> None:
    packtool.shuffle(store, tmp_path / "rows", method="partial", batch_size=4, sequence_length=16)
    report = packtool.stats(tmp_path / "rows")
    count_by_hand(tmp_path / "rows", np.random.default_rng(5).integers(2, 90, 300), report)
    assert report.mixing[0].batch_size == 4


def test_of_a_bucket_shuffle(store: Path, tmp_path: Path) -> None:
    packtool.pack([store, store], tmp_path / "packed", strategy="buckets", buckets=[32, 128])
    packtool.shuffle(tmp_path / "packed", tmp_path / "rows", method="bucket", batch_tokens=512)
    report = packtool.stats(tmp_path / "rows")
    assert [m.batch_size for m in report.mixing] == [512 // 32, 512 // 128]
    assert report.mixing[0].sources.mean > 1
    assert sum(b.row_share for b in report.buckets) == pytest.approx(1)
    count_by_hand(tmp_path / "rows", np.tile(np.random.default_rng(5).integers(2, 90, 300), 2), report)


def test_an_order_alone_has_no_rows(store: Path, tmp_path: Path) -> None:
    packtool.pack(store, tmp_path / "base", strategy="concat", sequence_length=16)
    packtool.shuffle(tmp_path / "base", tmp_path / "order", method="atom", order_only=True)
    with pytest.raises(UsageError, match=r"an order, which has no rows of its own\. Give the packed dataset it orders"):
        packtool.stats(tmp_path / "order")
    with pytest.raises(UsageError, match="--order: only packed datasets take an order"):
        packtool.stats(store, order=tmp_path / "order")


def test_a_page_does_not_take_the_place_of_a_shard(tmp_path: Path) -> None:
    store = make_store(tmp_path / "store", np.array([3, 4]))
    before = (store / "tokens-00000.npy").read_bytes()
    with pytest.raises(
        UsageError, match=r"--html: '.*tokens-00000.npy' is not the name of a page, and what lies there"
    ):
        packtool.stats(store, html=store / "tokens-00000.npy")
    assert (store / "tokens-00000.npy").read_bytes() == before
