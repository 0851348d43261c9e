"""`first-fit-shuffle`: the bins of a walk over all bins, in the same random order; a worked example."""

from hypothesis import given
from hypothesis import strategies as st

from packtool.planning.shuffling.permutation import Purpose, permutation
from tests.examples import examples
from tests.planning.packing import oracles
from tests.planning.packing.cases import cases
from tests.planning.packing.tokens import bins_of, one, render


def in_random_order(lengths: list[int], size: int, seed: int) -> list[list[oracles.Piece]]:
    """First fit of chunks, whole rows first, then what is left of each document in the order of its key."""
    chunks = oracles.chunks(lengths, size)
    order = permutation(len(lengths), seed=seed, purpose=Purpose.FIRST_FIT_ORDER).tolist()
    tails = {document: (document, start, length) for document, start, length in chunks if length < size}
    bins: list[list[oracles.Piece]] = []
    for chunk in [chunk for chunk in chunks if chunk[2] == size] + [tails[each] for each in order if each in tails]:
        for bin in bins:
            if sum(length for _, _, length in bin) + chunk[2] <= size:
                bin.append(chunk)
                break
        else:
            bins.append([chunk])
    return bins


@examples(200)
@given(cases(), st.integers(0, (1 << 64) - 1))
def test_item_by_item(case, seed):
    size, lengths = case
    only = one("first-fit-shuffle", lengths, sequence_length=size, seed=seed)
    assert [sorted(bin) for bin in bins_of(only)] == [sorted(bin) for bin in in_random_order(lengths, size, seed)]


def test_by_hand():
    lengths = [5, 6, 3, 2, 9]
    assert permutation(5, seed=7, purpose=Purpose.FIRST_FIT_ORDER).tolist() == [2, 4, 0, 3, 1]
    only = one("first-fit-shuffle", lengths, sequence_length=8, seed=7)
    assert render(only, lengths) == [
        "e0 e1 e2 e3 e4 e5 e6 e7",
        "c0 c1 cE a0 a1 a2 a3 aE",
        "d0 dE b0 b1 b2 b3 b4 bE",
    ]
    assert only.eos_omitted == 1
