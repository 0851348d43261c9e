"""Rows in their final order with their tokens, batch by batch, straight from a source that fits in memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from packtool.arrays import IN_MEMORY, Arrays
from packtool.plan import I64, Plan, Segments
from packtool.writing.layout import Layout, join, unit_range
from packtool.writing.source import Source, Tokens, Units, padding, split_loss

_WITHOUT_TOKENS = 8
"""How many times as many rows are laid out at a time where their tokens are not."""


class Batch(NamedTuple):
    """Some rows.

    Attributes:
        segments: None where those are not known.
        tokens: row after row; None where they stay in the stores.
        loss: whether each token trains; None where all of them do, or where nobody counts them.
    """

    segments: Segments | None
    tokens: Tokens | None
    loss: Tokens | None


class PlannedRows(ABC):
    """The rows of a plan in their final order, read from any number of threads, each its own range of rows.

    Args:
        plan: whose rows they are.
        order: movable atom at each place of the new order, or None to keep the plan's own.
        arrays: makes those that are as long as the order.
    """

    def __init__(self, plan: Plan, order: I64 | None, arrays: Arrays = IN_MEMORY) -> None:
        self.plan = plan
        self._order = order
        self._layout = Layout(plan, order, arrays)

    @abstractmethod
    def batches(self, first: int, last: int) -> Iterator[Batch]:
        """Yield rows ``first:last``, in order, padding included."""

    def atoms(self, first: int, last: int) -> I64 | None:
        """Return row offsets, from `first`, of atoms that begin in rows ``first:last``; None if atoms do not vary."""
        return self._layout.atoms(first, last)

    def written(self, first: int, last: int) -> None:  # noqa: B027 - most keep nothing for single rows
        """Note that rows ``first:last`` are stored: scratch data that only they need may go."""


class OrderedRows(PlannedRows):
    """Rows read from a source in a new order of its atoms: each token moves once.

    Args:
        source: where the units are.
        order: movable atom at each place of the new order, or None to keep the plan's own.
        sparing: give back the memory that maps what was read, batch by batch.
        arrays: makes the tables that the source and the order need.
    """

    def __init__(self, source: Source, order: I64 | None, sparing: bool = False, arrays: Arrays = IN_MEMORY) -> None:
        super().__init__(source.plan, order, arrays)
        self._source = source
        self._sparing = sparing
        source.prepare(arrays)  # now, before several threads read

    def __reduce__(self) -> tuple[Any, ...]:
        return OrderedRows, (self._source, self._order, self._sparing)

    def batches(self, first: int, last: int) -> Iterator[Batch]:
        for a, b in self._layout.batches(first, last):
            units = self._source.read(self._layout.units(*unit_range(self.plan, a, b)))
            yield rows_of(self.plan, units, self._source.pad_id)
            if self._sparing:
                self._source.release()


class RowsWithoutTokens(PlannedRows):
    """Rows of which nothing but their segments is read, and which tokens train, to be counted.

    Args:
        plan, order, arrays: as of `PlannedRows`.
        counted: whose `loss` tells which tokens train; None where that is not to be counted.
    """

    def __init__(
        self, plan: Plan, order: I64 | None, arrays: Arrays = IN_MEMORY, counted: Source | None = None
    ) -> None:
        super().__init__(plan, order, arrays)
        self._counted = counted
        if counted is not None:
            counted.prepare(arrays)

    def __reduce__(self) -> tuple[Any, ...]:
        return RowsWithoutTokens, (self.plan, self._order, IN_MEMORY, self._counted)

    def batches(self, first: int, last: int) -> Iterator[Batch]:
        for a, b in self._layout.batches(first, last, _WITHOUT_TOKENS):
            segments = self._layout.segments(a, b)
            loss = None if self._counted is None or self._counted.loss is None else self._counted.loss(segments)
            yield Batch(segments, None, loss)


def rows_of(plan: Plan, units: Units, pad_id: int) -> Batch:
    """Join consecutive units to whole rows; the last row is padded."""
    segments, tokens = units
    lacking = -len(tokens) % (plan.sequence_length // plan.unit)
    if lacking:
        tokens = np.concatenate([tokens, padding((lacking, plan.unit), tokens.dtype, pad_id)])
    return Batch(None if segments is None else join(segments, plan.unit, plan.sequence_length), *split_loss(tokens))
