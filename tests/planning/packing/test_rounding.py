"""Pieces at multiples: nothing but padding is added. `tests/test_laws.py` says where they begin."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from packtool.planning.packing import PackOptions, plan
from packtool.planning.plan import Plan
from tests.examples import examples
from tests.test_laws import corpora, rows_of


def pieces_of(plans: list[Plan], *, shuffled: bool = False) -> list[tuple[int, int, int]]:
    """Documents, starts and lengths of all pieces, sorted."""
    rows = [rows_of(only, shuffled) for only in plans]
    return sorted(
        (document, start, length)
        for row in rows
        for document, start, length in zip(row.document.tolist(), row.start.tolist(), row.length.tolist(), strict=True)
        if document >= 0
    )


@pytest.mark.parametrize("name", ["bfd", "ffd", "first-fit-shuffle", "concat", "padding"])
@examples(40)
@given(data=st.data())
def test_the_same_tokens_are_placed_as_without(name: str, data: st.DataObject) -> None:
    size, multiple = 16, data.draw(st.sampled_from([2, 4, 8]), label="multiple")
    lengths = data.draw(corpora(size), label="lengths")
    options = {"sequence_length": size}
    with_multiple = plan(name, lengths, PackOptions(document_multiple=multiple, **options))
    without = plan(name, lengths, PackOptions(**options))
    for account in ("dropped", "eos_omitted", "eos_inserted"):
        assert sum(getattr(p, account) for p in with_multiple) == sum(getattr(p, account) for p in without)
    if name in ("bfd", "ffd", "first-fit-shuffle"):  # the same pieces, in other rows
        assert pieces_of(with_multiple) == pieces_of(without)
