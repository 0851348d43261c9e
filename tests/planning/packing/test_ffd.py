"""`ffd`: the bins of first-fit decreasing item by item, long documents, windows."""

from hypothesis import example, given

from tests.examples import examples
from tests.planning.packing import oracles
from tests.planning.packing.cases import cases
from tests.planning.packing.tokens import bins_of, one, render


@examples(300)
@given(cases())
@example((100_000, [70_000, 3, 140_001, 69_999, 100_000]))  # beyond 16 bits
def test_item_by_item(case):
    size, lengths = case
    items = oracles.chunks(lengths, size)
    assert bins_of(one("ffd", lengths, sequence_length=size, mix_rows=False)) == oracles.first_fit(items, size)


def test_ffd_by_hand():
    lengths = [5, 3, 6, 2]
    assert render(one("ffd", lengths, sequence_length=8, mix_rows=False), lengths) == [
        "c0 c1 c2 c3 c4 cE d0 dE",
        "a0 a1 a2 a3 aE b0 b1 bE",
    ]
