"""Units to be put into a new order: of a token store under a plan, or of a packed dataset."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from packtool.plan import Plan, Segments
from packtool.storage.packed import SEGMENT
from packtool.storage.token_store import Corpus
from packtool.writing.gather import Gatherer
from packtool.writing.layout import Layout, pad
from packtool.writing.stored_plan import StoredPlan
from packtool.writing.units import UnitReader

Fetch = Callable[[int, int, Segments | None], npt.NDArray[Any]]
"""(first row, last row, their pieces) to the tokens of these rows."""


@dataclass(frozen=True)
class Source:
    """Units, in the order of their plan.

    Attributes:
        plan: whose units they are.
        dtype: of the tokens.
        pad_id: what fills the last row.
        pieces: number of pieces, about.
        fetch: what reads the rows of a layout of the plan, in any order.
        stretch: (first unit, last unit) to their pieces, padding included, None where segments are not known; and
            their tokens, (units, unit).
        release: gives back memory that maps what was read.
    """

    plan: Plan
    dtype: np.dtype[Any]
    pad_id: int
    pieces: int
    fetch: Callable[[Layout], Fetch]
    stretch: Callable[[int, int], tuple[Segments | None, npt.NDArray[Any]]]
    release: Callable[[], object]

    @property
    def unit_bytes(self) -> int:
        return self.plan.unit * self.dtype.itemsize

    @property
    def bytes_written(self) -> int:
        """Bytes of the tokens of its rows."""
        return self.plan.rows * self.plan.sequence_length * self.dtype.itemsize

    @property
    def bytes(self) -> int:
        """Memory that all of it would take, with its order."""
        return self.plan.units * (self.unit_bytes + 32) + self.pieces * SEGMENT.itemsize


def corpus_source(corpus: Corpus, plan: Plan, pad_id: int) -> Source:
    """The units of a plan, gathered from token stores."""
    gather = Gatherer(
        corpus.shards,
        corpus.locate,
        dtype=corpus.dtype,
        pad_id=pad_id,
        eos_id=corpus.tokenizer.eos_id,
        longest_fill=plan.sequence_length,
    )

    def fetch(layout: Layout) -> Fetch:
        return lambda first, last, rows: gather(layout.segments(first, last) if rows is None else rows)

    def stretch(first: int, last: int) -> tuple[Segments | None, npt.NDArray[Any]]:
        pieces = plan.segments(np.arange(first, last))
        whole = pad(pieces, plan.unit - pieces.tokens())
        return whole, gather(whole).reshape(-1, plan.unit)

    return Source(plan, corpus.dtype, pad_id, plan.units + corpus.documents, fetch, stretch, corpus.release)


def stored_source(plan: StoredPlan, pad_id: int) -> Source:
    """The units of a packed dataset, as they are stored."""
    bucket = plan.bucket
    per_row = plan.sequence_length // plan.unit
    tables = bucket.tables() if bucket.has_segments else []
    pieces = sum(len(table) for table, _ in tables) + plan.units * (per_row > 1)

    def fetch(layout: Layout) -> Fetch:
        read = UnitReader(bucket, plan.unit)
        if tables:
            plan.segments(np.empty(0, np.int64))  # reads the table now, before several threads do

        def rows(first: int, last: int, _: object) -> npt.NDArray[Any]:
            tokens = read(layout.units(first * per_row, min(last * per_row, plan.units)))
            lacking = (last - first) * per_row - len(tokens)
            return np.pad(tokens, ((0, lacking), (0, 0)), constant_values=pad_id) if lacking else tokens

        return rows

    def stretch(first: int, last: int) -> tuple[Segments | None, npt.NDArray[Any]]:
        row = first // per_row
        tokens = bucket.tokens(row, -(-last // per_row)).reshape(-1, plan.unit)
        held = plan.stretch(first, last) if tables else None
        return held, tokens[first - row * per_row :][: last - first]

    return Source(plan, bucket.dtype, pad_id, pieces, fetch, stretch, bucket.release)
