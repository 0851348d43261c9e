"""`shuffle` of packed datasets: what `pack` would have written, from any order, by any path."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import packtool
from packtool.errors import DataError, UsageError
from packtool.warnings import PacktoolWarning
from tests.making import Make
from tests.stores import amended, contents

LENGTHS = np.random.default_rng(0).integers(1, 90, 200).tolist()


@pytest.fixture
def store(make: Make) -> Path:
    return make(LENGTHS, {"per_shard": 40}) / "store"


BUCKETS: list[dict[str, Any]] = [
    {"strategy": "buckets", "buckets": (16, 32, 64)},
    {"strategy": "length-buckets", "buckets": (16, 32, 64)},
    {"strategy": "decompose", "sequence_length": 64, "min_bucket": 4},
]


@pytest.mark.parametrize(("strategy", "atom_size"), [("concat", 192), ("padding", 16), ("padding", 192)])
def test_pack_is_pack_in_corpus_order_then_shuffle(store: Path, tmp_path: Path, strategy: str, atom_size: int) -> None:
    """Without segments, too."""
    options = {"strategy": strategy, "sequence_length": 64, "atom_size": atom_size, "segments": False}
    packtool.pack(store, tmp_path / "packed", seed=7, shard_tokens=64 * 50, **options)
    packtool.pack(store, tmp_path / "corpus", shuffle=False, shard_tokens=64 * 50, **options)
    packtool.shuffle(tmp_path / "corpus", tmp_path / "shuffled", seed=7)
    expected, found = contents(tmp_path / "packed"), contents(tmp_path / "shuffled")
    if atom_size < 64:  # which atoms came to lie together is then not known
        for name in ("report.json", "manifest.json"):
            assert expected.pop(name) != found.pop(name)
    assert found == expected
    assert packtool.verify(tmp_path / "shuffled").problems == []


@pytest.mark.parametrize(
    ("packed_with", "remainder", "atom_size"),
    [(16, "pad", 1), (64, "drop", 32), (192, "pad", 64), (64, "drop", 320), (192, "pad", 320)],
)
def test_concat_takes_any_atom_size(
    store: Path, tmp_path: Path, packed_with: int, atom_size: int, remainder: str
) -> None:
    options: dict[str, Any] = {"strategy": "concat", "sequence_length": 64, "remainder": remainder}
    packtool.pack(store, tmp_path / "corpus", shuffle=False, atom_size=packed_with, **options)
    packtool.shuffle(tmp_path / "corpus", tmp_path / "shuffled", atom_size=atom_size)
    packtool.pack(store, tmp_path / "packed", atom_size=atom_size, **options)
    assert contents(tmp_path / "shuffled") == contents(tmp_path / "packed")


@pytest.mark.parametrize(("kind", "remainder"), [(0, None), (0, "drop"), (1, "pad"), (1, "drop"), (2, "drop")])
def test_rows_that_fill_no_batch_are_counted(store: Path, tmp_path: Path, kind: int, remainder: str | None) -> None:
    packtool.pack(store, tmp_path / "packed", **BUCKETS[kind])
    shuffle: dict[str, Any] = {"method": "bucket", "batch_tokens": 192, "remainder": remainder, "epoch": 2}
    counted = packtool.shuffle(tmp_path / "packed", tmp_path / "rows", **shuffle).report.shuffle
    assert packtool.verify(tmp_path / "rows").problems == []
    rows = packtool.open(tmp_path / "rows")
    left = {length: len(bucket) for length, bucket in rows.buckets.items()}
    for bucket, _, count in rows.batches.tolist():
        left[bucket] -= count
    if remainder == "drop":
        assert counted.unbatched_rows == sum(left.values()) > 0
        assert counted.unbatched_tokens == sum(length * rows for length, rows in left.items())
    else:
        assert not any(left.values())
        assert counted.unbatched_rows is None


def test_rows_of_several_lengths_have_neither_batches_nor_atoms(store: Path, tmp_path: Path) -> None:
    packtool.pack(store, tmp_path / "packed", **BUCKETS[0])
    with pytest.raises(UsageError, match=r"has no batches\. Make them with `packtool shuffle --method bucket`"):
        packtool.open(tmp_path / "packed")[0]
    with pytest.raises(UsageError, match=r"rows of several lengths move one by one\. Leave atom_size out"):
        packtool.shuffle(tmp_path / "packed", tmp_path / "out", atom_size=32)


LANES: dict[str, Any] = {"method": "partial", "batch_size": 4, "sequence_length": 32}


@pytest.fixture
def packed(make: Make, tmp_path: Path) -> Path:
    """A store, and one dataset of each kind."""
    rows = {"strategy": "concat", "sequence_length": 64}
    padding = {"strategy": "padding", "sequence_length": 64, "shuffle": False}
    make(LENGTHS, concat={**rows, "shuffle": False}, shuffled=rows, padding=padding, at=tmp_path)
    packtool.shuffle(tmp_path / "store", tmp_path / "partial", **LANES)
    return tmp_path


@pytest.mark.parametrize(
    ("source", "options", "code", "message"),
    [
        ("concat", {"method": "random"}, "unknown-method", "Choose one of atom, partial, bucket."),
        ("store", {}, "not-packed", 'a token store, where method="atom" needs a packed dataset. Give what packtool'),
        ("concat", LANES, "not-a-store", 'a packed dataset, where method="partial" needs a token store. Give the t'),
        ("store", {"method": "bucket", "batch_tokens": 64}, "not-packed", 'method="bucket" needs a packed dataset'),
        ("concat", {"method": "bucket", "batch_tokens": 64}, "one-bucket", 'Give method="atom".'),
        ("concat", {"method": "bucket"}, "missing-option", 'batch_tokens: method="bucket" needs this option'),
        ("concat", {"batch_size": 4}, "option-not-taken", 'Leave it out, or use method="partial".'),
        ("concat", {"atom_size": 48}, "bad-atom-size", "48 does not fit the sequence length 64"),
        ("padding", {"atom_size": 32}, "atoms-fixed", "pack again with atom_size"),
        ("shuffled", {"atom_size": 32}, "atoms-fixed", "Shuffle what was packed with shuffle=False"),
        ("partial", {}, "partial-shuffled", "`packtool shuffle STORE --method partial --epoch N`"),
        ("store", {**LANES, "batch_size": 1000}, "too-few-tokens", "tokens do not fill one batch of 1000 rows of 32"),
    ],
)
def test_what_makes_no_sense(packed: Path, source: str, options: Any, code: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        packtool.shuffle(packed / source, packed / "out", **options)
    assert caught.value.code == code
    assert message in str(caught.value)
    assert not (packed / "out").exists()


def test_a_source_that_is_not_what_its_ledger_says(packed: Path) -> None:
    with amended(packed / "concat") as manifest:
        manifest["ledger"]["placed"] -= 1
        manifest["ledger"]["dropped"] += 1
        manifest["ledger"]["repeated"] += 1
    with pytest.raises(DataError, match="placed, but the ledger says") as caught:
        packtool.shuffle(packed / "concat", packed / "out")
    assert caught.value.code == "ledger-unbalanced"
    assert not (packed / "out" / "manifest.json").exists()


@pytest.mark.parametrize("strategy", ["concat", "decompose"])
def test_the_same_order_again_is_said(make: Make, tmp_path: Path, strategy: str) -> None:
    rows = make([8, 3, 60] * 9, rows={"strategy": strategy, "sequence_length": 16}) / "rows"
    said = r"rows: its rows are in this order already: epoch 0 of seed 42\. Give epoch=1, or another seed, for another"
    with pytest.warns(PacktoolWarning, match=said) as warned:
        packtool.shuffle(rows, tmp_path / "same")
    assert [each.message.code for each in warned] == ["order-unchanged"]  # type: ignore[union-attr]
    packtool.shuffle(rows, tmp_path / "other", epoch=1)
    packtool.shuffle(tmp_path / "other", tmp_path / "seed", epoch=1, seed=3)
    packtool.shuffle(tmp_path / "other", tmp_path / "first")
    assert contents(tmp_path / "first") == contents(rows)
