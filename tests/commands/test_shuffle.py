"""`shuffle`: what `pack` would have written, from any order, by any path."""

from __future__ import annotations

import json
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import packtool
from packtool.errors import DataError, UsageError
from packtool.reading import BucketDataset, Dataset
from packtool.storage.packed import PackedDataset
from packtool.storage.token_store import TokenStore
from tests.stores import reseal, write_store

LENGTHS = np.random.default_rng(0).integers(1, 90, 200).tolist()


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_store(tmp_path_factory.mktemp("shuffle") / "store", LENGTHS, per_shard=40)


def contents(path: Path) -> dict[str, bytes]:
    """Every file of a dataset but the one that may differ."""
    files = (file for file in path.rglob("*") if file.is_file() and file.name != "run.json")
    return {str(file.relative_to(path)): file.read_bytes() for file in files}


def rebuilt(dataset: PackedDataset, store: TokenStore) -> int:
    """Hold every stored piece against its document; the number of document tokens found."""
    found = 0
    for bucket in dataset.buckets:
        rows = bucket.segments(0, bucket.rows)
        tokens = bucket.tokens(0, bucket.rows).reshape(-1)
        place = 0
        for document, start, length in zip(rows.document, rows.start, rows.length, strict=True):
            if document >= 0:
                piece = store.document(int(document))[start : start + length]
                np.testing.assert_array_equal(tokens[place : place + length], piece)
                found += int(length)
            place += int(length)
    return found


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


@pytest.mark.parametrize(("packed_with", "remainder"), [(16, "pad"), (64, "drop"), (192, "pad")])
@pytest.mark.parametrize("atom_size", [1, 32, 64, 320])
def test_concat_takes_any_atom_size(
    store: Path, tmp_path: Path, packed_with: int, atom_size: int, remainder: str
) -> None:
    options: dict[str, Any] = {"strategy": "concat", "sequence_length": 64, "remainder": remainder}
    packtool.pack(store, tmp_path / "corpus", shuffle=False, atom_size=packed_with, **options)
    packtool.shuffle(tmp_path / "corpus", tmp_path / "shuffled", atom_size=atom_size)
    packtool.pack(store, tmp_path / "packed", atom_size=atom_size, **options)
    assert contents(tmp_path / "shuffled") == contents(tmp_path / "packed")


@pytest.mark.parametrize(
    ("strategy", "atom_size"), [("concat", 16), ("concat", 128), ("padding", 16), ("padding", 128)]
)
def test_the_same_atoms_in_another_order(store: Path, tmp_path: Path, strategy: str, atom_size: int) -> None:
    packtool.pack(store, tmp_path / "corpus", strategy=strategy, sequence_length=64, atom_size=atom_size, shuffle=False)
    packtool.shuffle(tmp_path / "corpus", tmp_path / "a", seed=42)
    packtool.shuffle(tmp_path / "corpus", tmp_path / "b", seed=43)
    packtool.shuffle(tmp_path / "corpus", tmp_path / "c", seed=42, epoch=1)
    atoms = [_atoms(PackedDataset(tmp_path / name), atom_size) for name in ("corpus", "a", "b", "c")]
    assert len({tuple(each) for each in atoms}) == 4
    assert len({frozenset(Counter(each).items()) for each in atoms}) == 1
    assert rebuilt(PackedDataset(tmp_path / "c"), TokenStore(store)) >= sum(LENGTHS) - len(LENGTHS)


def _atoms(dataset: PackedDataset, atom_size: int) -> list[bytes]:
    """The tokens of each atom."""
    bucket = dataset.buckets[0]
    tokens = bucket.tokens(0, bucket.rows).reshape(-1)
    offsets = bucket.atom_offsets()
    ends = np.arange(0, len(tokens) + atom_size, atom_size) if offsets is None else offsets * 64
    return [tokens[a:b].tobytes() for a, b in pairwise(ends) if a < len(tokens)]


def test_workers_make_no_difference(store: Path, tmp_path: Path) -> None:
    packtool.pack(store, tmp_path / "corpus", strategy="padding", sequence_length=64, atom_size=256, shuffle=False)
    for workers in (1, 2, 5):
        packtool.shuffle(tmp_path / "corpus", tmp_path / str(workers), workers=workers)
    assert contents(tmp_path / "1") == contents(tmp_path / "2") == contents(tmp_path / "5")


@pytest.mark.parametrize(
    ("strategy", "options"),
    [
        ("concat", {"atom_size": 16}),
        ("concat", {"atom_size": 192}),
        ("padding", {"atom_size": 16}),
        ("padding", {"atom_size": 192}),
        ("bfd", {}),
        ("seamless", {"max_repetition": "0.5"}),
    ],
)
@pytest.mark.parametrize("shuffled", [True, False])
def test_the_reader_follows_an_order(
    store: Path, tmp_path: Path, strategy: str, options: dict[str, Any], shuffled: bool
) -> None:
    packtool.pack(store, tmp_path / "base", strategy=strategy, sequence_length=64, shuffle=shuffled, **options)
    packtool.shuffle(tmp_path / "base", tmp_path / "order", epoch=3, order_only=True)
    packtool.shuffle(tmp_path / "base", tmp_path / "rows", epoch=3)
    assert not list((tmp_path / "order").glob("tokens-*"))
    assert packtool.verify(tmp_path / "order").problems == []
    require_equal(packtool.open(tmp_path / "base", order=tmp_path / "order"), packtool.open(tmp_path / "rows"))


def test_the_reader_follows_an_order_of_other_atoms(store: Path, tmp_path: Path) -> None:
    packtool.pack(store, tmp_path / "base", strategy="concat", sequence_length=64, shuffle=False)
    packtool.shuffle(tmp_path / "base", tmp_path / "order", atom_size=8, order_only=True)
    packtool.shuffle(tmp_path / "base", tmp_path / "rows", atom_size=8)
    require_equal(packtool.open(tmp_path / "base", order=tmp_path / "order"), packtool.open(tmp_path / "rows"))


def require_equal(ordered: Dataset | BucketDataset, rows: Dataset | BucketDataset) -> None:
    assert isinstance(ordered, Dataset)
    assert isinstance(rows, Dataset)
    assert len(ordered) == len(rows)
    for row, (mine, theirs) in enumerate(zip(ordered, rows, strict=True)):
        np.testing.assert_array_equal(mine, theirs)
        np.testing.assert_array_equal(ordered.segments(row), rows.segments(row))
    np.testing.assert_array_equal(ordered[-1], rows[-1])


def test_an_order_of_another_dataset(packed: dict[str, Path]) -> None:
    with pytest.raises(DataError, match=r"order: made for concat, which is not what lies at .*shuffled") as caught:
        packtool.open(packed["shuffled"], order=packed["order"])
    assert caught.value.code == "order-differs"
    with pytest.raises(UsageError, match=r"a token store, where an order is needed\. Give what packtool shuffle"):
        packtool.open(packed["concat"], order=packed["store"])
    with pytest.raises(UsageError, match="an order, where a packed dataset is needed"):
        packtool.open(packed["order"])


BUCKETS: list[dict[str, Any]] = [
    {"strategy": "buckets", "buckets": (16, 32, 64)},
    {"strategy": "length-buckets", "buckets": (16, 32, 64)},
    {"strategy": "decompose", "sequence_length": 64, "min_bucket": 4},
]


@pytest.mark.parametrize("options", BUCKETS, ids=lambda options: options["strategy"])
def test_several_buckets_share_one_permutation(store: Path, tmp_path: Path, options: dict[str, Any]) -> None:
    packtool.pack(store, tmp_path / "packed", seed=7, **options)
    packtool.pack(store, tmp_path / "corpus", shuffle=False, **options)
    packtool.shuffle(tmp_path / "corpus", tmp_path / "shuffled", seed=7)
    assert contents(tmp_path / "shuffled") == contents(tmp_path / "packed")
    orders = tmp_path / "orders"
    packtool.shuffle(tmp_path / "corpus", orders, seed=7, order_only=True)
    assert packtool.verify(orders).problems == []
    ordered, rows = packtool.open(tmp_path / "corpus", order=orders), packtool.open(tmp_path / "shuffled")
    assert isinstance(ordered, BucketDataset)
    assert isinstance(rows, BucketDataset)
    for length, bucket in rows.buckets.items():
        np.testing.assert_array_equal(ordered.buckets[length].tokens(0, len(bucket)), bucket.tokens(0, len(bucket)))
    with pytest.raises(UsageError, match=r"has no batches\. Make them with packtool shuffle --method bucket"):
        rows[0]


@pytest.mark.parametrize("remainder", [None, "pad", "drop"])
@pytest.mark.parametrize("options", BUCKETS, ids=lambda options: options["strategy"])
def test_bucket(store: Path, tmp_path: Path, options: dict[str, Any], remainder: str | None) -> None:
    packtool.pack(store, tmp_path / "packed", **options)
    shuffle: dict[str, Any] = {"method": "bucket", "batch_tokens": 192, "remainder": remainder, "epoch": 2}
    result = packtool.shuffle(tmp_path / "packed", tmp_path / "rows", **shuffle)
    packtool.shuffle(tmp_path / "packed", tmp_path / "order", order_only=True, **shuffle)
    packtool.shuffle(tmp_path / "packed", tmp_path / "atoms", epoch=2)
    for path in ("rows", "order"):
        assert packtool.verify(tmp_path / path).problems == []
    rows, atoms = packtool.open(tmp_path / "rows"), packtool.open(tmp_path / "atoms")
    ordered = packtool.open(tmp_path / "packed", order=tmp_path / "order")
    assert isinstance(rows, BucketDataset)
    assert isinstance(atoms, BucketDataset)
    assert isinstance(ordered, BucketDataset)
    assert rows.batches is not None
    left = {length: len(bucket) for length, bucket in rows.buckets.items()}
    for number, (bucket, _, count) in enumerate(rows.batches.tolist()):
        batch = rows[number]
        assert batch.shape == (count, bucket)
        assert batch.size == 192 or (remainder != "drop" and batch.size < 192)
        np.testing.assert_array_equal(batch, ordered[number])
        left[bucket] -= count
    for length, bucket in rows.buckets.items():
        np.testing.assert_array_equal(bucket.tokens(0, len(bucket)), atoms.buckets[length].tokens(0, len(bucket)))
    assert result.report is not None
    counted = result.report.shuffle
    assert counted is not None
    if remainder == "drop":
        assert counted.unbatched_rows == sum(left.values()) > 0
        assert counted.unbatched_tokens == sum(length * rows for length, rows in left.items())
    else:
        assert not any(left.values())
        assert counted.unbatched_rows is None
    assert rebuilt(PackedDataset(tmp_path / "rows"), TokenStore(store)) > 0


def test_batch_tokens_must_fit_every_bucket(store: Path, tmp_path: Path) -> None:
    packtool.pack(store, tmp_path / "packed", **BUCKETS[0])
    with pytest.raises(UsageError, match="--batch-tokens: 96 tokens is not a whole number of rows of 64"):
        packtool.shuffle(tmp_path / "packed", tmp_path / "out", method="bucket", batch_tokens=96)
    with pytest.raises(UsageError, match=r"rows of several lengths move one by one\. Leave --atom-size out"):
        packtool.shuffle(tmp_path / "packed", tmp_path / "out", atom_size=32)


def test_a_dry_run(packed: dict[str, Path], tmp_path: Path) -> None:
    dry = packtool.shuffle(packed["concat"], tmp_path / "out", dry_run=True)
    assert dry.preview is not None
    rows = -(-sum(LENGTHS) // 64)
    assert dry.preview.figures == {"rows": rows, "tokens": rows * 64, "bytes": rows * 128}
    order = packtool.shuffle(packed["concat"], tmp_path / "out", dry_run=True, order_only=True)
    assert order.preview is not None
    assert order.preview.figures == {"atoms": rows - 1, "bytes": 8 * (rows - 1)}
    assert not (tmp_path / "out").exists()


def test_an_empty_dataset(tmp_path: Path) -> None:
    store = write_store(tmp_path / "store", [])
    packtool.pack(store, tmp_path / "corpus", strategy="concat", sequence_length=64, shuffle=False)
    packtool.shuffle(tmp_path / "corpus", tmp_path / "shuffled")
    assert PackedDataset(tmp_path / "shuffled").buckets[0].rows == 0


def test_partial(store: Path, tmp_path: Path) -> None:
    result = packtool.shuffle(store, tmp_path / "a", method="partial", batch_size=4, sequence_length=32)
    stream = np.concatenate([TokenStore(store).document(i) for i in range(len(LENGTHS))])
    steps = len(stream) // (4 * 32)
    lanes = stream[: steps * 4 * 32].reshape(4, -1)
    rows = PackedDataset(tmp_path / "a").buckets[0].tokens(0, 4 * steps)
    for lane in range(4):
        ring = np.tile(lanes[lane], 2).tobytes()
        assert rows[lane::4].tobytes() in ring
    text = sum(n - 1 for n in LENGTHS)
    assert result.report is not None
    assert result.report.ledger.input == text
    dropped = stream[steps * 4 * 32 :]
    assert result.report.ledger.dropped == int((dropped != 0).sum())
    assert result.report.ledger.padding == 0
    assert rebuilt(PackedDataset(tmp_path / "a"), TokenStore(store)) == steps * 4 * 32
    assert packtool.verify(tmp_path / "a").problems == []
    packtool.shuffle(store, tmp_path / "b", method="partial", batch_size=4, sequence_length=32, epoch=1)
    other = PackedDataset(tmp_path / "b").buckets[0].tokens(0, 4 * steps)
    assert (other != rows).any()


@pytest.fixture(scope="module")
def packed(store: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One dataset of each kind, by name."""
    top = tmp_path_factory.mktemp("packed")
    paths = {name: top / name for name in ("store", "concat", "shuffled", "padding", "partial", "order")}
    paths["store"] = store
    packtool.pack(store, paths["concat"], strategy="concat", sequence_length=64, shuffle=False)
    packtool.pack(store, paths["shuffled"], strategy="concat", sequence_length=64)
    packtool.pack(store, paths["padding"], strategy="padding", sequence_length=64, shuffle=False)
    packtool.shuffle(store, paths["partial"], method="partial", batch_size=4, sequence_length=32)
    packtool.shuffle(paths["concat"], paths["order"], order_only=True)
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
        ("order", {}, "not-packed", "an order, where --method atom needs a packed dataset"),
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
        (
            "store",
            {"method": "partial", "batch_size": 4, "sequence_length": 32, "order_only": True},
            "not-packed",
            "a token store, where --order-only of --method partial needs rows that this method wrote. Write one epoch",
        ),
        (
            "partial",
            {"method": "partial", "batch_size": 8, "sequence_length": 32, "order_only": True},
            "bad-option",
            "--batch-size: 8, but the dataset was made with 4. Give the same, or shuffle the token store anew.",
        ),
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
