"""`shuffle --order-only`: an order as plain arrays, followed here with NumPy alone."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import packtool
from packtool.commands.dataset_job import DatasetResult
from packtool.errors import DataError, UsageError
from packtool.formats.packed import PackedDataset
from packtool.outputs import lock
from tests.shell import Shell
from tests.stores import write_store

LENGTHS = np.random.default_rng(5).integers(2, 90, 120)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_store(tmp_path_factory.mktemp("order") / "store", LENGTHS.tolist(), per_shard=40)


def tokens(dataset: Path, bucket: int = 0) -> npt.NDArray[Any]:
    rows = PackedDataset(dataset).buckets[bucket]
    return rows.tokens(0, rows.rows).reshape(-1)


def followed(base: Path, order: Path, atom_tokens: int, bucket: int = 0) -> npt.NDArray[Any]:
    """The tokens of a dataset in an order, atom by atom; an incomplete last one stays last."""
    stream, rows = tokens(base, bucket), PackedDataset(base).buckets[bucket]
    begins = rows.atom_offsets()
    ends = np.arange(0, len(stream) + atom_tokens, atom_tokens) if begins is None else begins * rows.sequence_length
    atoms = [stream[a:b] for a, b in pairwise(ends)]
    order = np.load(order).tolist()
    assert sorted(order) == list(range(len(order)))
    return np.concatenate([*(atoms[each] for each in order), *atoms[len(order) :]])


@pytest.mark.parametrize(
    ("strategy", "options", "atom"),
    [
        ("concat", {"atom_size": 16}, 16),
        ("padding", {"atom_size": 192}, 64),
        ("bfd", {}, 64),
        ("seamless", {"max_repetition": "0.5"}, 64),
    ],
)
@pytest.mark.parametrize("shuffled", [True, False])
def test_it_orders_the_atoms_of_the_rows(
    store: Path, tmp_path: Path, strategy: str, options: dict[str, Any], atom: int, shuffled: bool
) -> None:
    packtool.pack(store, tmp_path / "base", strategy=strategy, sequence_length=64, shuffle=shuffled, **options)
    result = packtool.shuffle(tmp_path / "base", tmp_path / "order", epoch=3, order_only=True)
    packtool.shuffle(tmp_path / "base", tmp_path / "rows", epoch=3)
    assert sorted(file.name for file in (tmp_path / "order").iterdir()) == ["order.npy", "run.json"]
    assert result.report is None
    found = followed(tmp_path / "base", tmp_path / "order" / "order.npy", atom)
    np.testing.assert_array_equal(found, tokens(tmp_path / "rows"))


def test_rows_of_several_lengths_have_an_order_each_and_their_batches(store: Path, tmp_path: Path) -> None:
    packtool.pack(store, tmp_path / "base", strategy="buckets", buckets=(16, 64))
    options: dict[str, Any] = {"method": "bucket", "batch_tokens": 128, "epoch": 2}
    packtool.shuffle(tmp_path / "base", tmp_path / "order", order_only=True, **options)
    packtool.shuffle(tmp_path / "base", tmp_path / "rows", **options)
    for number, length in enumerate((16, 64)):
        order = tmp_path / "order" / f"bucket-{length:05d}" / "order.npy"
        found = followed(tmp_path / "base", order, length, number)
        np.testing.assert_array_equal(found, tokens(tmp_path / "rows", number))
    found, wanted = (np.load(tmp_path / name / "batches.npy") for name in ("order", "rows"))
    np.testing.assert_array_equal(found, wanted)


def test_what_lies_at_its_output(store: Path, tmp_path: Path) -> None:
    packtool.pack(store, tmp_path / "base", strategy="bfd", sequence_length=64)
    out = tmp_path / "order"

    def shuffle(**options: Any) -> DatasetResult:
        return packtool.shuffle(tmp_path / "base", out, order_only=True, **options)

    first = shuffle(epoch=1)
    assert not first.kept
    assert shuffle(epoch=1, resume=True).kept
    with pytest.raises(UsageError, match=r"order: holds a finished order already\. Give --overwrite to replace it"):
        shuffle(epoch=1)
    with pytest.raises(UsageError, match="begun with other options or inputs"):
        shuffle(epoch=2, resume=True)
    assert not shuffle(epoch=2, overwrite=True).kept
    (out / "unfinished").mkdir()
    (out / "unfinished" / "lock").touch()  # of a run that was killed when it had removed its marker
    assert packtool.info(out).state == "whole"
    assert shuffle(epoch=2, resume=True).kept
    assert sorted(file.name for file in out.iterdir()) == ["order.npy", "run.json"]
    held = lock.take(out / "unfinished", "shuffle", str(out))
    with pytest.raises(DataError, match="is writing here"):
        shuffle(epoch=1, overwrite=True)
    held.release()
    (out / "unfinished").rmdir()
    (out / "notes.txt").write_text("mine")
    with pytest.raises(UsageError, match=r"holds notes\.txt, which packtool did not write"):
        shuffle(epoch=1, overwrite=True)
    (out / "notes.txt").unlink()
    (out / "order.npy").unlink()
    assert packtool.info(out).missing == ["order.npy"]
    with pytest.raises(DataError, match=r"order\.npy: listed, but not there as it was written"):
        shuffle(epoch=2, resume=True)
    assert not shuffle(epoch=2, overwrite=True).kept
    packtool.pack(store, out, strategy="concat", sequence_length=64, overwrite=True)  # a dataset in place of an order
    assert not shuffle(epoch=1, overwrite=True).kept
    assert sorted(file.name for file in out.iterdir()) == ["order.npy", "run.json"]
    with pytest.raises(UsageError, match="the output lies inside the input"):
        packtool.shuffle(tmp_path / "base", tmp_path / "base" / "order", order_only=True)
    with pytest.raises(UsageError, match="an order is written to a directory of this machine"):
        packtool.shuffle(tmp_path / "base", "s3://bucket/order", order_only=True)
    with pytest.raises(UsageError, match=r"--order-only: has no effect with --method partial"):
        packtool.shuffle(store, out, method="partial", batch_size=2, sequence_length=8, order_only=True)


def test_as_json(store: Path, tmp_path: Path, shell: Shell) -> None:
    packtool.pack(store, tmp_path / "base", strategy="bfd", sequence_length=64)
    assert (
        json.loads(shell("shuffle", tmp_path / "base", "-o", tmp_path / "order", "--order-only", "--json"))["report"]
        is None
    )


@pytest.mark.parametrize("described", [True, False])
def test_it_is_known_by_name(store: Path, here: Path, shell: Shell, described: bool) -> None:
    """Also one that an earlier version of packtool wrote, which did not describe it."""
    packtool.pack(store, "base", strategy="bfd", sequence_length=64)
    packtool.shuffle("base", "order", order_only=True, epoch=2)
    rows = len(packtool.open("base"))
    name, epoch = f"an order of {rows} rows, epoch 2, for np.load", "2"
    if not described:
        written = json.loads(Path("order/run.json").read_text())
        Path("order/run.json").write_text(json.dumps({"command": "shuffle", "key": written["key"], "written": {}}))
        name, epoch = "an order for np.load", "N"
    assert shell("info", "order").startswith(f"order: {name}, whole\n")
    refused = f"packtool: error[no-manifest]: order: {name}, without rows. Give the dataset that it orders, which "
    refused += f"packtool.open(DATASET).epoch({epoch}) reads in this order.\n"
    for command in ("verify", "stats", "show"):
        assert shell.refused(command, "order", *(["--row", "0"] if command == "show" else [])) == refused
    assert packtool.shuffle("base", "order", order_only=True, epoch=2, resume=True).kept
    assert not packtool.shuffle("base", "order", order_only=True, epoch=3, overwrite=True).kept
