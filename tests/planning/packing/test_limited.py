"""Rows of at most so many documents: nothing else moves, and no more rows are added than said."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from packtool.planning.packing import STRATEGIES, plan
from packtool.planning.packing.plans import Bins, RowsPlan
from tests.examples import examples
from tests.planning.packing.oracles import Piece
from tests.planning.packing.tokens import bins_of
from tests.test_laws import corpora, options_of

LIMITED = [name for name, strategy in STRATEGIES.items() if strategy.takes("max_documents_per_row")]


def whole_segments(row: list[Piece]) -> int:
    """The segments of a row, pieces that go on where the one before them ends counted with it."""
    ends = [(document, start + length) for document, start, length in row]
    before = [(-1, 0), *ends[:-1]]
    return sum(piece[0] >= 0 and (piece[0], piece[1]) != end for piece, end in zip(row, before, strict=True))


@pytest.mark.parametrize("name", LIMITED)
@examples(60)
@given(data=st.data())
def test_no_row_holds_more(name: str, data: st.DataObject) -> None:
    size, most = 16, data.draw(st.integers(1, 5), label="most")
    lengths = data.draw(corpora(size), label="lengths")
    drawn = options_of(name, size, data, multiple=data.draw(st.sampled_from([1, 4]), label="multiple"))
    free, limited = (replace(drawn, max_documents_per_row=number) for number in (None, most))
    plans, before = plan(name, lengths, limited), plan(name, lengths, free)
    for only, whole in zip(plans, before, strict=True):
        found, expected = bins_of(only), bins_of(whole)
        assert max(map(whole_segments, found), default=0) <= most
        pieces = list(map(whole_segments, expected))
        windows = len(lengths) if limited.window_tokens < 1 << 34 else 1
        moved = sum(max(0, count - most) for count in pieces)
        assert len(found) - len(expected) <= -(-moved // most) + windows
        added = len(found) - len(expected)
        assert only.stages == {"filled": len(expected), "added": added}
        if limited.window_tokens == 1 << 34:
            assert len(found) - len(expected) == -(-moved // most)


def test_what_mixing_joined_stays_together() -> None:
    """Two pieces of a document, one after the other, are one segment of the row."""
    pieces = Bins(np.array([0, 0, 1, 2]), np.array([0, 4]), np.array([0, 1]), np.array([0, 3]), np.array([3, 2]))
    rows = RowsPlan(16, np.array([5, 4, 3]), bins=pieces, whole=True)
    assert bins_of(rows.limited(3)) == bins_of(rows)
    assert bins_of(rows.limited(2)) == [[(0, 0, 3), (0, 3, 2), (1, 0, 4)], [(2, 0, 3)]]
    assert bins_of(rows.limited(1)) == [[(0, 0, 3), (0, 3, 2)], [(1, 0, 4)], [(2, 0, 3)]]
    assert rows.limited(1).stages == {"filled": 1, "added": 2}
    apart = Bins(np.array([0, 1, 0]), np.array([0, 3]), np.array([0, 2]), np.array([0, 3]), np.array([3, 2]))
    rows = RowsPlan(16, np.array([5, 4]), bins=apart, whole=True)
    assert bins_of(rows.limited(2)) == [[(0, 0, 3), (1, 0, 4)], [(0, 3, 2)]]
