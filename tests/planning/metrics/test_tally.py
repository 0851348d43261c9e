"""Tallies, and the metrics of them, against a count of every single token; of no rows, and of several buckets."""

from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from packtool.planning.metrics.summary import measure
from packtool.planning.metrics.tally import Tally
from packtool.planning.plan import INSERTED_EOS, PADDING
from tests.segments import Piece, segments


@dataclass
class Naive:
    """The definitions, applied token by token."""

    lengths: list[int]
    size: int
    placed: int = 0
    repeated: int = 0
    eos: int = 0
    inserted: int = 0
    padding: int = 0
    per_row: list[int] = field(default_factory=list)
    context: int = 0
    masked: int = 0
    intact: set[int] = field(default_factory=set)
    rows_of: dict[int, set[int]] = field(default_factory=lambda: defaultdict(set))
    overlap: set[int] = field(default_factory=set)

    def add(self, row: list[Piece]) -> None:
        here = set()
        for document, start, length, repeated in row:
            if repeated:
                self.overlap.add(document)
            for i in range(length):
                if document == PADDING:
                    self.padding += 1
                    continue
                self.context += i if document >= 0 else 0
                self.masked += i + 1 if document >= 0 else 1
                if document == INSERTED_EOS:
                    self.inserted += 1
                    continue
                here.add(document)
                if start + i == self.lengths[document] - 1:
                    self.eos += 1
                elif i < repeated:
                    self.repeated += 1
                else:
                    self.placed += 1
            if document >= 0 and start == 0 and length >= self.lengths[document] - 1 > min(repeated, length):
                self.intact.add(document)
        self.per_row.append(len(here))


@st.composite
def packings(draw: st.DrawFn) -> tuple[list[int], int, list[list[Piece]]]:
    """Documents and rows of any kind: pieces out of order, left out, overlapping, beside padding and inserted EOS."""
    size = draw(st.integers(1, 12))
    lengths = draw(st.lists(st.integers(1, 20), min_size=1, max_size=8))
    rows: list[list[Piece]] = []
    placed: set[tuple[int, int]] = set()
    for _ in range(draw(st.integers(0, 8))):
        row: list[Piece] = []
        room = size
        while room:
            kind = draw(st.sampled_from(["document", "document", "document", "padding", "eos"]))
            if kind == "padding":
                row.append((PADDING, 0, draw(st.integers(1, room)), 0))
            elif kind == "eos":
                row.append((INSERTED_EOS, 0, 1, 0))
            else:
                document = draw(st.integers(0, len(lengths) - 1))
                start = draw(st.integers(0, lengths[document] - 1))
                length = draw(st.integers(1, min(room, lengths[document] - start)))
                repeated = draw(st.integers(0, length))
                text = {(document, i) for i in range(start, min(start + length, lengths[document] - 1))}
                if text & placed:  # no token is placed twice
                    repeated = length
                placed |= text
                row.append((document, start, length, repeated))
            room -= row[-1][2]
        rows.append(row)
    return lengths, size, rows


@given(packings(), st.integers(0, 8), st.integers(1, 5))
@example(([2], 4, [[(0, 1, 1, 0), (INSERTED_EOS, 0, 1, 0), (0, 0, 2, 0)]]), 0, 1)  # its EOS, then all of it
def test_counts_every_token(packing: tuple[list[int], int, list[list[Piece]]], cut: int, batch: int) -> None:
    lengths, size, rows = packing
    naive = Naive(lengths, size)
    for row in rows:
        naive.add(row)
    array = np.array(lengths, np.uint32)
    tally, second = Tally(array, size), Tally(array, size)
    tally.add(segments(rows[:cut]))
    second.add(segments(rows[cut:]))
    tally.include(second.counts())

    assert (tally.placed, tally.repeated, tally.padding) == (naive.placed, naive.repeated, naive.padding)
    assert (tally.eos, tally.eos_inserted) == (naive.eos + naive.inserted, naive.inserted)
    assert (tally.rows, tally.output) == (len(rows), len(rows) * size)
    assert tally.output == tally.placed + tally.repeated + tally.eos + tally.padding

    metrics = measure([tally], batch)
    intact = naive.intact | {d for d, n in enumerate(lengths) if n == 1}
    fitting = {d for d, n in enumerate(lengths) if n - 1 <= size}
    assert metrics.cut_documents == len(lengths) - len(intact)
    assert metrics.cut_of_all_ratio == (len(lengths) - len(intact)) / len(lengths)
    assert metrics.fitting_documents == len(fitting)
    assert metrics.cut_fitting_documents == len(fitting - intact)
    assert metrics.overlapping_documents == len(naive.overlap)
    text = sum(lengths) - len(lengths)
    assert metrics.dropped_ratio == (text and (text - naive.placed) / text)
    assert metrics.attention_masked == naive.masked
    assert metrics.attention_full == sum(range(1, size + 1)) * len(rows)
    assert metrics.steps_per_epoch == len(range(0, len(rows), batch))
    tokens = len(rows) * size - naive.padding
    if tokens:
        fewest = -(-tokens // size)
        assert metrics.row_excess == (len(rows) - fewest) / fewest
    if rows:
        ordered = sorted(naive.per_row)
        assert metrics.padding_ratio == naive.padding / (len(rows) * size)
        assert metrics.concatenation_ratio == len(lengths) / len(rows)
        assert metrics.documents_per_row.mean == sum(ordered) / len(ordered)
        assert metrics.documents_per_row.p50 == ordered[-(-len(ordered) // 2) - 1]
        assert metrics.documents_per_row.max == ordered[-1]
    if tokens:
        assert metrics.mean_context == naive.context / tokens


def test_nothing_at_all() -> None:
    metrics = measure([Tally(np.zeros(0, np.uint32), 8)], batch_size=4)
    assert metrics.rows == metrics.documents == metrics.steps_per_epoch == 0
    assert metrics.padding_ratio == metrics.cut_of_all_ratio == metrics.mean_context == 0


def test_buckets_are_measured_together() -> None:
    lengths = np.array([4, 4, 8, 9, 3], np.uint32)
    short, long = Tally(lengths, 4), Tally(lengths, 8)
    short.add(segments([[(0, 0, 4, 0)], [(1, 0, 4, 0)], [(3, 8, 1, 0), (PADDING, 0, 3, 0)]]))
    long.add(segments([[(2, 0, 8, 0)], [(3, 0, 8, 0)]]))
    metrics = measure([short, long], batch_size=1)
    assert metrics.rows == 5
    assert metrics.fitting_documents == 5  # that of 9 tokens has a text of 8
    assert metrics.cut_documents == metrics.cut_fitting_documents == 1  # the dropped one; 3 lacks its EOS
    assert metrics.steps_per_epoch == 2 + 2  # batches of 8 tokens: two rows of 4, or one of 8
    assert metrics.row_excess == 0
    assert metrics.padding_ratio == 3 / 28


def test_parts_of_many_documents_take_little_memory_each() -> None:
    lengths = np.full(10_000_000, 9, np.uint32)
    whole = Tally(lengths, 8)
    for document in (3, 9_999_999, 3):
        part = Tally(lengths, 8)
        part.add(segments([[(document, 0, 8, 0)], [(document, 1, 8, 7)]]))
        assert part._overlaps is None, "an array as long as the corpus"
        whole.include(part.counts())
    assert np.flatnonzero(whole.overlaps).tolist() == [3, 9_999_999]


def test_overlaps_are_the_same_however_many_there_are() -> None:
    lengths = np.full(20_000, 9, np.uint32)
    whole, parts = Tally(lengths, 8), Tally(lengths, 8)
    draw = np.random.default_rng(5)
    for _ in range(40):
        documents = draw.integers(0, 20_000, 500).tolist()
        rows = segments([[(document, 1, 8, 7)] for document in documents])
        part = Tally(lengths, 8)
        part.add(rows)
        whole.add(rows)
        parts.include(part.counts())
    assert whole._overlaps is not None
    np.testing.assert_array_equal(whole.overlaps, parts.overlaps)
    assert 0 < whole.overlaps.sum() < 20_000
