"""Rows of a source in a new order, batch by batch."""

from typing import Any

import numpy as np
import pytest

from packtool.planning.arrays import Arrays
from packtool.planning.packing.plans import Bins, RowsPlan
from packtool.planning.plan import I64, PADDING, pad
from packtool.rows import layout
from packtool.rows.unit_source import Units, UnitSource
from packtool.writing.planned_rows import OrderedRows, rows_of

LENGTHS = np.array([4, 3, 4, 2, 1])


class Numbered(UnitSource):
    """Units whose tokens are their document's number; what is read at a time is noted."""

    def __init__(self) -> None:
        plan = RowsPlan(4, LENGTHS, bins=Bins(np.arange(5), np.array([0, 1, 2, 3, 5])), whole=True)
        super().__init__(plan, np.dtype("<u2"), pad_id=99, segments=5)
        self.reads: list[int] = []
        self.released = 0

    def prepare(self, arrays: Arrays) -> None:
        pass

    def read(self, units: I64) -> Units:
        self.reads.append(len(units))
        segments = self.plan.segments(units)
        tokens = np.full((len(units), 4), self.pad_id, self.dtype)
        for unit in range(segments.groups):
            held = segments[unit : unit + 1]
            tokens[unit, : int(held.tokens()[0])] = np.repeat(held.document, held.length)
        return pad(segments, 4), tokens

    def scan(self, first: int, last: int) -> Units:
        return self.read(np.arange(first, last))

    def release(self) -> None:
        self.released += 1


ROWS = [[0] * 4, [1, 1, 1, 99], [2] * 4, [3, 3, 4, 99]]


@pytest.mark.parametrize("order", [None, [3, 1, 0, 2]])
@pytest.mark.parametrize("batch_tokens", [4, 8, 1 << 20])
def test_batches_are_the_rows_in_order(
    monkeypatch: pytest.MonkeyPatch, order: list[int] | None, batch_tokens: int
) -> None:
    monkeypatch.setattr(layout, "BATCH_TOKENS", batch_tokens)
    source = Numbered()
    rows = OrderedRows(source, None if order is None else np.array(order), sparing=True)
    wanted = [ROWS[number] for number in order or range(4)]
    for first, last in [(0, 4), (1, 3), (2, 2)]:
        del source.reads[:]
        source.released = 0
        batches: list[Any] = list(rows.batches(first, last))
        assert [row for batch in batches for row in batch.tokens.tolist()] == wanted[first:last]
        assert sum(batch.segments.groups for batch in batches) == last - first
        assert max(source.reads, default=0) * 4 <= batch_tokens
        assert source.released == len(batches)


def test_what_the_last_row_lacks_is_padding() -> None:
    source = Numbered()
    plan = RowsPlan(4, LENGTHS, bins=Bins(np.arange(5), np.array([0, 1, 2, 3, 5])), whole=True)
    object.__setattr__(plan, "sequence_length", 8)
    segments, tokens = source.read(np.array([0, 1, 2]))
    joined, padded, _ = rows_of(plan, (segments, tokens), 99)
    assert padded.reshape(2, 8).tolist() == [ROWS[0] + ROWS[1], ROWS[2] + [99] * 4]
    assert joined.tokens().tolist() == [8, 8]
    assert joined.document.tolist() == [0, 1, PADDING, 2, PADDING]
    assert rows_of(plan, (None, tokens), 99)[0] is None
