"""`shuffle`: what `pack` would have written, from any order, by any path."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import packtool
from packtool.errors import DataError, UsageError
from packtool.formats.packed import PackedDataset
from tests.stores import contents, reseal, write_store

LENGTHS = np.random.default_rng(0).integers(1, 90, 200).tolist()


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_store(tmp_path_factory.mktemp("shuffle") / "store", LENGTHS, per_shard=40)


@pytest.mark.parametrize("options", [{}, {"shuffle": False, "strategy": "bfd"}])
def test_an_epoch_keeps_the_seed_of_the_dataset(store: Path, tmp_path: Path, options: dict[str, Any]) -> None:
    packed = tmp_path / "packed"
    packtool.pack(store, packed, **{"strategy": "concat", "sequence_length": 64, "seed": 7, **options})
    packtool.shuffle(packed, tmp_path / "next", epoch=1)
    packtool.shuffle(packed, tmp_path / "said", epoch=1, seed=7)
    packtool.shuffle(packed, tmp_path / "other", epoch=1, seed=42)
    assert contents(tmp_path / "next") == contents(tmp_path / "said")
    recorded = [PackedDataset(tmp_path / name).manifest.shuffle for name in ("next", "other")]
    assert [each.seed for each in recorded if each is not None] == [7, 42]
    assert contents(tmp_path / "next") != contents(tmp_path / "other")


@pytest.mark.parametrize(("remainder", "segments"), [("pad", True), ("drop", True), ("pad", False)])
@pytest.mark.parametrize(("strategy", "atom_size"), [(s, a) for s in ("concat", "padding") for a in (16, 64, 192)])
def test_pack_is_pack_in_corpus_order_then_shuffle(
    store: Path, tmp_path: Path, strategy: str, atom_size: int, remainder: str, segments: bool
) -> None:
    options: dict[str, Any] = {
        "strategy": strategy,
        "sequence_length": 64,
        "atom_size": atom_size,
        "remainder": remainder,
        "segments": segments,
        "shard_tokens": 64 * 50,
    }
    packtool.pack(store, tmp_path / "packed", seed=7, **options)
    packtool.pack(store, tmp_path / "corpus", shuffle=False, **options)
    packtool.shuffle(tmp_path / "corpus", tmp_path / "shuffled", seed=7)
    packtool.pack(store, tmp_path / "other", seed=8, **options)
    packtool.shuffle(tmp_path / "other", tmp_path / "again", seed=7)
    expected, found = contents(tmp_path / "packed"), contents(tmp_path / "shuffled")
    assert contents(tmp_path / "again") == found
    if not segments and atom_size < 64:  # what atoms of a row came to lie together is then not known
        for name in ("report.json", "manifest.json"):
            assert expected.pop(name) != found.pop(name)
    assert found == expected
    assert packtool.verify(tmp_path / "shuffled").problems == []


def test_the_seed_of_rows_in_corpus_order_is_that_of_their_epochs(tmp_path: Path) -> None:
    store = write_store(tmp_path / "store", LENGTHS)
    options: dict[str, Any] = {"strategy": "concat", "sequence_length": 64, "index_only": True}
    packtool.pack(store, tmp_path / "plain", shuffle=False, seed=7, **options)
    packtool.pack(store, tmp_path / "packed", seed=7, **options)
    packtool.shuffle(tmp_path / "plain", tmp_path / "shuffled", index_only=True)
    assert contents(tmp_path / "packed") == contents(tmp_path / "shuffled")
    plain, packed = packtool.open(tmp_path / "plain"), packtool.open(tmp_path / "packed")
    for epoch in (0, 3):
        assert (plain.epoch(epoch, repack=True)[:] == packed.epoch(epoch, repack=True)[:]).all()
        assert (plain.epoch(epoch)[:] == packed.epoch(epoch)[:]).all()


def test_workers_make_no_difference(store: Path, tmp_path: Path) -> None:
    packtool.pack(store, tmp_path / "corpus", strategy="padding", sequence_length=64, atom_size=256, shuffle=False)
    for workers in (1, 2, 5):
        packtool.shuffle(tmp_path / "corpus", tmp_path / str(workers), workers=workers)
    assert contents(tmp_path / "1") == contents(tmp_path / "2") == contents(tmp_path / "5")


def test_an_empty_dataset(tmp_path: Path) -> None:
    store = write_store(tmp_path / "store", [])
    packtool.pack(store, tmp_path / "corpus", strategy="concat", sequence_length=64, shuffle=False)
    packtool.shuffle(tmp_path / "corpus", tmp_path / "shuffled")
    assert PackedDataset(tmp_path / "shuffled").buckets[0].rows == 0


@pytest.fixture(scope="module")
def packed(store: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One dataset of each kind, by name."""
    top = tmp_path_factory.mktemp("packed")
    paths = {name: top / name for name in ("store", "concat", "shuffled", "padding", "partial")}
    paths["store"] = store
    packtool.pack(store, paths["concat"], strategy="concat", sequence_length=64, shuffle=False)
    packtool.pack(store, paths["shuffled"], strategy="concat", sequence_length=64)
    packtool.pack(store, paths["padding"], strategy="padding", sequence_length=64, shuffle=False)
    packtool.shuffle(store, paths["partial"], method="partial", batch_size=4, sequence_length=32)
    return paths


@pytest.mark.parametrize(
    ("source", "options", "code", "message"),
    [
        ("concat", {"method": "random"}, "unknown-method", "Choose one of atom, partial, bucket."),
        (
            "store",
            {},
            "not-packed",
            "a token store, where --method atom needs a packed dataset. Give what packtool",
        ),
        (
            "concat",
            {"method": "partial", "batch_size": 4, "sequence_length": 32},
            "not-a-store",
            "a packed dataset, where --method partial needs a token store. Give the token store itself, or shuffle its "
            "rows with --method atom.",
        ),
        ("store", {"method": "bucket", "batch_tokens": 64}, "not-packed", "--method bucket needs a packed dataset"),
        ("concat", {"method": "bucket", "batch_tokens": 64}, "one-bucket", "Give --method atom."),
        ("concat", {"method": "bucket"}, "missing-option", "--batch-tokens: --method bucket needs this option"),
        ("store", {"method": "partial", "batch_size": 4}, "missing-option", "Give --batch-size and --sequence-length."),
        ("concat", {"batch_size": 4}, "option-not-taken", "Leave it out, or use --method partial."),
        ("concat", {"atom_size": 48}, "bad-atom-size", "48 does not fit the sequence length 64"),
        ("concat", {"atom_size": 0}, "bad-option", "--atom-size: 0 is out of range"),
        ("padding", {"atom_size": 32}, "atoms-fixed", "pack again with packtool pack --atom-size"),
        ("shuffled", {"atom_size": 32}, "atoms-fixed", "Shuffle what packtool pack --no-shuffle writes"),
        ("partial", {}, "partial-shuffled", "packtool shuffle STORE --method partial --epoch N"),
        ("concat", {"seed": -1}, "bad-option", "--seed: -1 is out of range"),
        ("concat", {"epoch": 1 << 32}, "bad-option", "--epoch: 4294967296 is out of range"),
        ("concat", {"memory": "much"}, "bad-size", "--memory: 'much' is not a size"),
        (
            "store",
            {"method": "partial", "batch_size": 1000, "sequence_length": 64},
            "too-few-tokens",
            "tokens do not fill one batch of 1000 rows of 64",
        ),
    ],
)
def test_what_makes_no_sense(
    packed: dict[str, Path], tmp_path: Path, source: str, options: dict[str, Any], code: str, message: str
) -> None:
    with pytest.raises(UsageError) as caught:
        packtool.shuffle(packed[source], tmp_path / "out", **options)
    assert caught.value.code == code
    assert message in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_a_source_that_is_not_what_its_ledger_says(packed: dict[str, Path], tmp_path: Path) -> None:
    manifest = json.loads((packed["concat"] / "manifest.json").read_text())
    copy = tmp_path / "copy"
    copy.mkdir()
    for file in packed["concat"].iterdir():
        (copy / file.name).write_bytes(file.read_bytes())
    manifest["ledger"]["placed"] -= 1
    manifest["ledger"]["dropped"] += 1
    manifest["ledger"]["repeated"] += 1
    reseal(copy, manifest)
    with pytest.raises(DataError, match="placed, but the ledger says") as caught:
        packtool.shuffle(copy, tmp_path / "out")
    assert caught.value.code == "ledger-unbalanced"
    assert not (tmp_path / "out" / "manifest.json").exists()
