"""Few documents: their bins are first fit in random order wherever that takes no more of them."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from packtool.planning.packing.first_fit_shuffle import first_fit_in_order
from packtool.planning.packing.scatter import scattered
from packtool.planning.shuffling.permutation import Purpose, permutation
from tests.examples import examples
from tests.planning.packing.cases import cases
from tests.planning.packing.tokens import bins_of, one


def tried(order: list[int], tails: dict[int, int], percent: int) -> list[int]:
    """Documents in a random order, but the smallest, of a percentage of the tokens, last and longest first."""
    smallest = sorted(order, key=lambda document: tails[document])
    count, left = 0, sum(tails.values()) * percent // 100
    while count < len(order) and tails[smallest[count]] <= left:
        left -= tails[smallest[count]]
        count += 1
    last = smallest[:count]
    return [document for document in order if document not in last] + last[::-1]


@examples(300)
@given(cases(), st.sampled_from(["ffd", "bfd"]), st.integers(0, (1 << 64) - 1))
def test_the_first_order_that_takes_no_more_bins(case, strategy, seed):
    size, lengths = case
    alike = one(strategy, lengths, sequence_length=size, mix_rows=False)
    long = alike.rows - (len(alike.bins.offsets) - 1)
    bins = bins_of(alike)
    pieces = {piece[0]: piece for bin in bins[long:] for piece in bin}
    tails = {document: length for document, _, length in pieces.values()}
    drawn = permutation(len(lengths), seed=seed, purpose=Purpose.FIRST_FIT_ORDER).tolist()
    for percent in (0, 2, 5):
        order = tried([document for document in drawn if document in tails], tails, percent)
        bin_of = first_fit_in_order(np.array([tails[document] for document in order], np.int64), size).tolist()
        filled = [
            [pieces[document] for document, at in zip(order, bin_of, strict=True) if at == bin]
            for bin in sorted(set(bin_of))
        ]
        if len(order) > 2 and len(filled) <= len(bins) - long:
            bins[long:] = filled
            break
    assert bins_of(scattered(alike, seed)) == bins
