"""`stats` against what was packed, and against a count on the written shards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import packtool
from packtool.errors import DataError, UsageError
from tests.commands.counted import make_store


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return make_store(tmp_path / "store", np.random.default_rng(5).integers(2, 90, 300))


def test_of_a_store(store: Path) -> None:
    report = packtool.stats(store)
    assert report.kind == "store"
    assert report.lengths.documents == 300
    assert report.lengths.total == report.counts["tokens"]


def test_refuses_an_empty_batch(store: Path) -> None:
    with pytest.raises(UsageError, match=r"--batch-size: 0 is out of range\. Give 1 or more\."):
        packtool.stats(store, batch_size=0)


def test_several_paths_must_be_stores_and_the_one_that_is_not_is_named(store: Path, tmp_path: Path) -> None:
    packtool.pack(store, tmp_path / "packed", strategy="concat", sequence_length=32)
    for paths in ([tmp_path / "packed", store], [store, tmp_path / "packed"]):
        with pytest.raises(UsageError, match="packed: only token stores can be measured together"):
            packtool.stats(paths)


def test_refuses_to_compare_on_a_packed_dataset(store: Path, tmp_path: Path) -> None:
    packtool.pack(store, tmp_path / "packed", strategy="concat", sequence_length=32)
    with pytest.raises(UsageError, match="a packed dataset, but strategies are compared on documents"):
        packtool.stats(tmp_path / "packed", compare="all", sequence_length=32)
    said = r"^--mix: has no effect on packed datasets\. Leave it out: this dataset is packed already\.$"
    with pytest.raises(UsageError, match=said) as caught:
        packtool.stats(tmp_path / "packed", mix={"store": 1})
    assert caught.value.code == "option-not-taken"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"compare": "tetris"}, r"--compare: there is no strategy 'tetris'\. Choose one of concat, padding.*, all\."),
        ({"compare": "concat"}, r"--sequence-length: the strategy concat needs the length of a row\. Give --seq"),
        ({"sequence_length": 32}, r"^--sequence-length: has no effect without --compare\. Add --compare all\.$"),
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


def test_a_page_does_not_take_the_place_of_a_shard(tmp_path: Path) -> None:
    store = make_store(tmp_path / "store", np.array([3, 4]))
    before = (store / "tokens-00000.npy").read_bytes()
    with pytest.raises(
        UsageError, match=r"--html: '.*tokens-00000.npy' is not the name of a page, and what lies there"
    ):
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
    with pytest.raises(DataError, match=r"no manifest.json, so this is not a finished"):
        packtool.stats(made)
