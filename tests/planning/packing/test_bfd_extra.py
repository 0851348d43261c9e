"""`bfd-extra`: the bins item by item, and what is dropped."""

from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from tests.planning.packing import oracles
from tests.planning.packing.cases import cases
from tests.planning.packing.tokens import bins_of, one, render


@examples(250)
@given(cases(), st.data())
def test_item_by_item(case, data):
    size, lengths = case
    extra = data.draw(st.sampled_from([0, 1, size // 4, size - 1]))
    bins = oracles.best_fit(oracles.chunks(lengths, size), size + extra)
    only = one("bfd-extra", lengths, sequence_length=size, extra_capacity=extra)
    assert bins_of(only) == oracles.settle(bins, size)


def test_what_exceeds_a_row_is_dropped_and_counted():
    lengths = [5, 4, 3]
    only = one("bfd-extra", lengths, sequence_length=8, extra_capacity=4)
    assert render(only, lengths) == ["a0 a1 a2 a3 aE b0 b1 b2"]
    assert (only.dropped, only.eos_omitted) == (2, 2)
