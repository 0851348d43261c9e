"""Large orders are files that all processes of a machine share: the same orders, made once."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from packtool.planning.shuffling import atom
from packtool.planning.shuffling.atom import AtomShuffle
from packtool.reading import orders
from packtool.reading.orders import shared_order
from packtool.reading.stream import Stream

ATOMS = 5000
DRAWN = AtomShuffle(ATOMS, 3, 42, 7, AtomShuffle(ATOMS, 3, 42, 0))


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(orders, "LARGE", 1)
    monkeypatch.setattr("packtool.reading.orders._NamelessArrays.sorted_at_once", 1000)


def test_whoever_comes_first_makes_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Others wait for it, and nothing else is left."""
    made, permutation = [], atom.permutation

    def counted(*given: object, **more: object) -> object:
        made.append(more["epoch"])
        return permutation(*given, **more)  # type: ignore[arg-type]

    expected = DRAWN.order()
    monkeypatch.setattr(atom, "permutation", counted)
    with ThreadPoolExecutor(6) as pool:
        for order in pool.map(lambda _: shared_order(DRAWN, tmp_path / "orders"), range(6)):
            np.testing.assert_array_equal(order, expected)
            assert order.dtype == np.uint32
            assert not order.flags.writeable
    assert sorted(made) == [0, 7]
    files = [file.name for file in (tmp_path / "orders").iterdir() if not file.name.endswith((".lock", ".room"))]
    assert sorted(files) == [f"{ATOMS}-3-42-0", f"{ATOMS}-3-42-7-from-42-0"]


def test_it_is_made_in_memory_where_no_file_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for directory in (None, tmp_path / "file" / "orders"):
        np.testing.assert_array_equal(shared_order(DRAWN, directory), DRAWN.order())


@pytest.mark.parametrize("name", ["small-atoms", "varying-atoms", "repeats", "joined-padding"])
def test_rows_are_those_of_orders_in_memory(
    packed: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    shared = Stream(packed[name], epochs=2, cache=tmp_path)
    addresses = shared.addresses(0, len(shared))
    found = shared.batch(addresses)["input_ids"]
    assert len(list((tmp_path / "orders").glob("*-from-42-0"))) == 1  # of epoch 1; epoch 0 is as stored
    monkeypatch.setattr(orders, "LARGE", 1 << 20)
    alone = Stream(packed[name], epochs=2, cache=tmp_path / "none")
    np.testing.assert_array_equal(found, alone.batch(addresses)["input_ids"])
    assert not (tmp_path / "none").exists()
