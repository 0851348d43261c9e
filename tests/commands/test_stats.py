"""`stats` against what was packed, and against a count on the written shards."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import packtool
from packtool.errors import UsageError
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


def test_of_a_store(store: Path) -> None:
    report = packtool.stats(store)
    assert report["kind"] == "store"
    assert report["lengths"]["documents"] == 300
    assert report["lengths"]["total"] == report["counts"]["tokens"]


@pytest.mark.parametrize("strategy", ["concat", "padding"])
def test_of_a_packed_dataset_equals_the_report_beside_it(store: Path, tmp_path: Path, strategy: str) -> None:
    packtool.pack(store, tmp_path / "packed", strategy=strategy, sequence_length=32)
    report = packtool.stats(tmp_path / "packed")
    written = json.loads((tmp_path / "packed" / "report.json").read_bytes())
    assert {name: report[name] for name in written} == written


def test_counts_batches(store: Path, tmp_path: Path) -> None:
    packtool.pack(store, tmp_path / "packed", strategy="concat", sequence_length=32)
    report = packtool.stats(tmp_path / "packed", batch_size=7)
    assert report["metrics"]["steps_per_epoch"] == -(-report["metrics"]["rows"] // 7)
    assert report["mixing"][0]["batch_size"] == 7


def test_without_segments_the_ledger_remains(store: Path, tmp_path: Path) -> None:
    packtool.pack(store, tmp_path / "packed", strategy="concat", sequence_length=32, segments=False)
    report = packtool.stats(tmp_path / "packed")
    assert report["metrics"] is None
    assert report["ledger"]["rows"] > 0


def test_refuses_an_empty_batch(store: Path) -> None:
    with pytest.raises(UsageError, match=r"--batch-size: 0 is out of range\. Give 1 or more\."):
        packtool.stats(store, batch_size=0)
