"""The worked examples of `concat`, down to the token."""

import numpy as np

from packtool.planning.packing import PackOptions, plan
from tests.planning.packing.tokens import render

LENGTHS = np.array([5, 2, 6])  # a1 a2 a3 a4 aE | b1 bE | c1 c2 c3 c4 c5 cE


def concat(sequence_length: int, atom_size: int, remainder: str = "pad", lengths: np.ndarray = LENGTHS) -> object:
    options = PackOptions(sequence_length=sequence_length, atom_size=atom_size, remainder=remainder)
    (only,) = plan("concat", lengths, options)
    return only


def test_atoms_of_a_row():
    assert render(concat(4, 4), LENGTHS) == ["a0 a1 a2 a3", "aE b0 bE c0", "c1 c2 c3 c4", "cE . . ."]


def test_atoms_below_a_row_are_joined_in_their_new_order():
    only = concat(4, 2)
    assert (only.atoms, only.movable_atoms) == (7, 6)
    order = np.array([5, 4, 3, 2, 1, 0, 6])
    assert render(only, LENGTHS, order) == ["c3 c4 c1 c2", "bE c0 aE b0", "a2 a3 a0 a1", "cE . . ."]


def test_atoms_above_a_row_are_cut_and_stay_together():
    only = concat(2, 4)
    assert (only.rows, only.atoms, only.movable_atoms) == (7, 4, 3)
    order = np.array([2, 0, 1, 3])
    assert render(only, LENGTHS, order) == ["c1 c2", "c3 c4", "a0 a1", "a2 a3", "aE b0", "bE c0", "cE ."]


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
