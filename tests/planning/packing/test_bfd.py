"""`bfd`: the bins of best-fit decreasing item by item, long documents."""

from hypothesis import given

from tests.examples import examples
from tests.planning.packing import oracles
from tests.planning.packing.cases import cases
from tests.planning.packing.tokens import bins_of, one, render


@examples(300)
@given(cases())
def test_item_by_item(case):
    size, lengths = case
    items = oracles.chunks(lengths, size)
    assert bins_of(one("bfd", lengths, sequence_length=size, mix_rows=False)) == oracles.best_fit(items, size)


def test_long_documents_are_cut_to_rows_and_an_eos_alone_is_left_out():
    lengths = [9, 3]
    only = one("bfd", lengths, sequence_length=4, mix_rows=False)
    assert render(only, lengths) == ["a0 a1 a2 a3", "a4 a5 a6 a7", "b0 b1 bE ."]
    assert (only.dropped, only.eos_omitted) == (0, 1)
