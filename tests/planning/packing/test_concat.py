"""The worked examples of `concat`, down to the token."""

import numpy as np
import pytest

from packtool.planning.packing import PackOptions, plan
from tests.planning.packing.tokens import render

LENGTHS = np.array([5, 2, 6])  # a1 a2 a3 a4 aE | b1 bE | c1 c2 c3 c4 c5 cE


def concat(sequence_length: int, atom_size: int, remainder: str = "pad", lengths: np.ndarray = LENGTHS) -> object:
    options = PackOptions(sequence_length=sequence_length, atom_size=atom_size, remainder=remainder)
    (only,) = plan("concat", lengths, options)
    return only


@pytest.mark.parametrize(
    ("sequence_length", "atom_size", "order", "rows"),
    [
        (4, 4, None, ["a0 a1 a2 a3", "aE b0 bE c0", "c1 c2 c3 c4", "cE . . ."]),
        # Atoms below a row are joined in their new order.
        (4, 2, [5, 4, 3, 2, 1, 0, 6], ["c3 c4 c1 c2", "bE c0 aE b0", "a2 a3 a0 a1", "cE . . ."]),
        # Atoms above a row are cut, and stay together.
        (2, 4, [2, 0, 1, 3], ["c1 c2", "c3 c4", "a0 a1", "a2 a3", "aE b0", "bE c0", "cE ."]),
    ],
)
def test_atoms(sequence_length: int, atom_size: int, order: list[int] | None, rows: list[str]) -> None:
    only = concat(sequence_length, atom_size)
    assert only.movable_atoms == only.atoms - 1
    assert render(only, LENGTHS, None if order is None else np.array(order)) == rows


def test_a_last_atom_of_whole_rows_stays_last_too():
    lengths = np.array([6])
    only = concat(2, 4, lengths=lengths)
    assert only.movable_atoms == 1
    assert render(only, lengths) == ["a0 a1", "a2 a3", "a4 aE"]


def test_drop_discards_what_fills_no_row():
    only = concat(4, 2, "drop")
    assert render(only, LENGTHS) == ["a0 a1 a2 a3", "aE b0 bE c0", "c1 c2 c3 c4"]
    assert (only.dropped, only.eos_omitted, only.last_atom_stays) == (0, 1, False)
    only = concat(6, 6, "drop", np.array([5, 2, 4]))
    assert (only.rows, only.dropped, only.eos_omitted) == (1, 3, 2)
