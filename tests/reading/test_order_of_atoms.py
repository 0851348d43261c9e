"""The order of an epoch as the number of the stored atom at each place, followed here with NumPy alone."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import packtool
from packtool.errors import UsageError
from packtool.formats.packed import PackedDataset
from tests.making import Make, drawn_lengths


@pytest.fixture
def store(make: Make) -> Path:
    return make(drawn_lengths(120, 89, 5), {"per_shard": 40}) / "store"


def tokens(dataset: Path, bucket: int = 0) -> npt.NDArray[Any]:
    rows = PackedDataset(dataset).buckets[bucket]
    return rows.tokens.between(0, rows.rows).reshape(-1)


def followed(base: Path, order: npt.NDArray[Any], atom_tokens: int, bucket: int = 0) -> npt.NDArray[Any]:
    """The tokens of a dataset in an order, atom by atom; an incomplete last one stays last."""
    stream, rows = tokens(base, bucket), PackedDataset(base).buckets[bucket]
    begins = rows.shards.atom_offsets()
    ends = np.arange(0, len(stream) + atom_tokens, atom_tokens) if begins is None else begins * rows.sequence_length
    atoms = [stream[a:b] for a, b in pairwise(ends)]
    assert sorted(order.tolist()) == list(range(len(order)))
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
@pytest.mark.parametrize("epoch", [0, 3])
@pytest.mark.filterwarnings("ignore:.*its rows are in this order already")
def test_it_orders_the_atoms_of_the_rows(
    store: Path, tmp_path: Path, strategy: str, options: dict[str, Any], atom: int, shuffled: bool, epoch: int
) -> None:
    packtool.pack(store, tmp_path / "base", strategy=strategy, sequence_length=64, shuffle=shuffled, **options)
    packtool.shuffle(tmp_path / "base", tmp_path / "rows", epoch=epoch)
    base = packtool.open(tmp_path / "base")
    order = base.epoch(epoch).order
    assert order.dtype == base.order.dtype == np.uint32
    np.testing.assert_array_equal(followed(tmp_path / "base", order, atom), tokens(tmp_path / "rows"))
    np.testing.assert_array_equal(base.order, np.arange(len(order)))


def test_rows_do_not_change_with_an_order_that_was_given_out(store: Path, tmp_path: Path) -> None:
    packtool.pack(store, tmp_path / "base", strategy="bfd", sequence_length=64)
    with pytest.raises(ValueError, match="read-only"):
        packtool.open(tmp_path / "base").epoch(1).order.sort()


def test_rows_that_are_made_anew_have_none(store: Path, tmp_path: Path) -> None:
    packtool.pack(store, tmp_path / "index", strategy="bfd", sequence_length=64, index_only=True)
    packtool.shuffle(store, tmp_path / "lanes", method="partial", batch_size=2, sequence_length=8)
    anew = r": these rows are packed anew, or cut anew from rotated lanes: no order of the stored rows gives them\."
    index, lanes = packtool.open(tmp_path / "index", stores=[store]), packtool.open(tmp_path / "lanes")
    for opened in (index.epoch(1, repack=True), lanes.epoch(1)):
        with pytest.raises(UsageError, match=anew):
            _ = opened.order
    assert sorted(index.epoch(1).order) == list(range(len(index)))
