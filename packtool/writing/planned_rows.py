"""Rows in their final order with their tokens, batch by batch, straight from a source that fits in memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from packtool.planning.arrays import IN_MEMORY, Arrays
from packtool.planning.plan import Ints, Plan, Segments
from packtool.rows.layout import Layout, join, unit_range
from packtool.rows.unit_source import Tokens, Units, UnitSource, padding, split_loss

_WITHOUT_TOKENS = 8  # the factor by which more rows are laid out at a time without their tokens


class RowBatch(NamedTuple):
    """A batch of rows."""

    segments: Segments | None  # None where they are not known
    tokens: Tokens | None  # row after row; None where they stay in the stores
    loss: Tokens | None  # 1 for tokens that train, 0 for others; None if all train, or if they are not counted


class PlannedRows(Layout, ABC):
    """The rows of a plan in their final order. Threads may read ranges of rows at the same time."""

    @abstractmethod
    def batches(self, first: int, last: int) -> Iterator[RowBatch]:
        """Yield rows ``first:last``, in order, padding included."""

    def written(self, first: int, last: int) -> None:
        """Note that rows ``first:last`` are stored: scratch data that only they need may go."""


class OrderedRows(PlannedRows):
    """Rows read from a source in a new order of its atoms: every token moves once.

    Args:
        source: of the units.
        order, arrays: as in `Layout`; the tables that the source needs are among these arrays, too.
        sparing: give back the memory that maps what was read, batch by batch.
    """

    def __init__(
        self, source: UnitSource, order: Ints | None, sparing: bool = False, arrays: Arrays = IN_MEMORY
    ) -> None:
        super().__init__(source.plan, order, arrays)
        self._source = source
        self._sparing = sparing
        source.prepare(arrays)  # now, before several threads read

    def __reduce__(self) -> tuple[Any, ...]:
        return OrderedRows, (self._source, self.order, self._sparing)

    def batches(self, first: int, last: int) -> Iterator[RowBatch]:
        for a, b in self.steps(first, last):
            units = self._source.read(self.units(np.arange(*unit_range(self.plan, a, b))))
            yield rows_of(self.plan, units, self._source.pad_id)
            if self._sparing:
                self._source.release()


class RowsWithoutTokens(PlannedRows):
    """Rows of which only segments are read, and which tokens train, to be counted.

    Args:
        plan, order, arrays: as in `Layout`.
        counted: its `loss` tells which tokens train; None where that is not counted.
    """

    def __init__(
        self, plan: Plan, order: Ints | None, arrays: Arrays = IN_MEMORY, counted: UnitSource | None = None
    ) -> None:
        super().__init__(plan, order, arrays)
        self._counted = counted
        if counted is not None:
            counted.prepare(arrays)

    def __reduce__(self) -> tuple[Any, ...]:
        return RowsWithoutTokens, (self.plan, self.order, IN_MEMORY, self._counted)

    def batches(self, first: int, last: int) -> Iterator[RowBatch]:
        for a, b in self.steps(first, last, _WITHOUT_TOKENS):
            segments = self.segments(a, b)
            loss = None if self._counted is None or self._counted.loss is None else self._counted.loss(segments)
            yield RowBatch(segments, None, loss)


def rows_of(plan: Plan, units: Units, pad_id: int) -> RowBatch:
    """Join consecutive units to whole rows; the last row is padded."""
    segments, tokens = units
    lacking = -len(tokens) % (plan.sequence_length // plan.unit)
    if lacking:
        tokens = np.concatenate([tokens, padding((lacking, plan.unit), tokens.dtype, pad_id)])
    return RowBatch(None if segments is None else join(segments, plan.unit, plan.sequence_length), *split_loss(tokens))
