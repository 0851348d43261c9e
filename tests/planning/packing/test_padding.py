"""The worked examples of `padding`, down to the token."""

import numpy as np

from packtool.planning.packing import PackOptions, plan
from tests.planning.packing.tokens import render


def padding(
    text: list[int], *, atom_size: int, sequence_length: int, remainder: str = "pad"
) -> tuple[object, np.ndarray]:
    lengths = np.array(text) + 1
    options = PackOptions(sequence_length=sequence_length, atom_size=atom_size, remainder=remainder)
    (only,) = plan("padding", lengths, options)
    return only, lengths


def words(name: str, first: int, last: int) -> str:
    return " ".join(f"{name}{i}" for i in range(first, last))


def test_a_document_of_130_tokens_in_rows_of_64():
    only, lengths = padding([130], atom_size=64, sequence_length=64)
    assert render(only, lengths) == [
        words("a", 0, 63) + " E",
        words("a", 63, 126) + " E",
        words("a", 126, 130) + " ." * 60,
    ]
    assert (only.eos_inserted, only.eos_omitted, only.dropped) == (2, 1, 0)


def test_a_tail_fills_rows_rather_than_its_atom():
    only, lengths = padding([35], atom_size=128, sequence_length=32)
    assert render(only, lengths) == [words("a", 0, 32), words("a", 32, 35) + " ." * 29]
    assert (only.atoms, only.atom_offsets.tolist()) == (1, [0, 2])


def test_small_atoms_are_joined_by_fours_after_shuffling():
    only, lengths = padding([40, 15], atom_size=16, sequence_length=64)
    first, second, tail = words("a", 0, 15) + " E", words("a", 15, 30) + " E", words("a", 30, 40) + " ." * 6
    other = words("b", 0, 15) + " bE"
    assert render(only, lengths) == [" ".join([first, second, tail, other])]
    assert render(only, lengths, np.array([3, 2, 0, 1])) == [" ".join([other, tail, first, second])]
    assert (only.eos_inserted, only.eos_omitted) == (2, 1)


def test_drop_discards_the_last_atoms_that_fill_no_row():
    only, lengths = padding([5, 3], atom_size=4, sequence_length=8, remainder="drop")
    assert render(only, lengths) == ["a0 a1 a2 E a3 a4 . ."]
    assert (only.dropped, only.eos_omitted, only.eos_inserted) == (3, 2, 1)


def test_rows_are_most_where_atoms_are_rows():
    # Documents longer than a row: smaller atoms need more EOS, larger ones more padding between documents (A.10).
    lengths = np.round(np.random.default_rng(1).lognormal(np.log(150), 0.8, 20_000)).astype(np.int64) + 130
    rows = {
        times: plan("padding", lengths, PackOptions(sequence_length=64, atom_size=64 * times))[0].rows
        for times in (1, 2, 4)
    }
    assert rows[1] > rows[2] > rows[4]
