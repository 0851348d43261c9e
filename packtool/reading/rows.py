"""The rows of one length, in stored order or in another."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from packtool.errors import UsageError
from packtool.formats.bucket_shards import StoredColumn
from packtool.formats.packed import GatheredColumn, PackedBucket, RowColumn
from packtool.formats.segment_table import to_table
from packtool.planning.plan import I64, Ints, Plan, Segments, index_type, offsets_of, pad, ranges
from packtool.rows.layout import Layout, join
from packtool.rows.stored_plan import RotatedPlan, StoredPlan

Index: TypeAlias = "int | np.integer[Any] | slice | Sequence[int] | Ints"

RowArray = npt.NDArray[Any]

_AT_ONCE = 1 << 20  # tokens that an iteration reads at a time


def number_of(index: int | np.integer[Any], count: int, what: str) -> int:
    """Return the number of the item at an index, from 0; negative indices count from the end.

    Raises:
        IndexError: there is no such item.
        TypeError: the index is not a number; True is refused, too, though it is 1 to Python.
    """
    if isinstance(index, bool):
        raise TypeError(f"a {what} is chosen by an integer, not {index}")
    index = int(index)
    number = index + count if index < 0 else index
    if not 0 <= number < count:
        raise IndexError(f"{what} {index} of {count}")
    return number


def numbers_of(index: Index, count: int, what: str) -> I64:
    """Return the numbers of the items at an index of a sequence, from 0.

    Args:
        index: a number, a slice, an array or list of numbers, or a mask as long as the sequence; negative numbers count
            from the end.
        count: length of the sequence.
        what: noun for an item, for messages.

    Raises:
        IndexError: there is no such item.
        TypeError: not an index.

    >>> numbers_of([-1, 0], 5, "row"), numbers_of(np.array([False, True]), 2, "row")
    (array([4, 0]), array([1]))
    """
    if isinstance(index, slice):
        return np.arange(*index.indices(count))
    if isinstance(index, int | np.integer):
        return np.array([number_of(index, count, what)])
    numbers = np.asarray(index)
    if numbers.dtype == np.bool_ and numbers.shape == (count,):
        return np.flatnonzero(numbers)
    if numbers.ndim != 1 or (len(numbers) and not np.issubdtype(numbers.dtype, np.integer)):
        how = "an integer, several by a slice or by integers in one dimension"
        raise TypeError(f"a {what} is chosen by {how}, not {index!r}")
    numbers = numbers.astype(np.int64)
    lowest = int(numbers.min(initial=0))
    if lowest < -count or int(numbers.max(initial=-1)) >= count:
        wrong = numbers[(numbers < -count) | (numbers >= count)]
        raise IndexError(f"{what} {wrong[0]} of {count}")
    return np.where(numbers < 0, numbers + count, numbers) if lowest < 0 else numbers


class Rows:
    """The rows of one length: a sequence of arrays of ``sequence_length`` token ids.

    Attributes:
        sequence_length: tokens in a row.
        dtype: of the tokens.
        has_segments: whether the dataset has a segment table.
    """

    def __init__(self, stored: PackedBucket, dtype: str | None = None) -> None:
        self._stored = stored
        self.sequence_length = stored.sequence_length
        self.dtype: np.dtype[Any] = np.dtype(dtype or stored.tokens.dtype)
        self.has_segments = stored.segments.exist

    def __len__(self) -> int:
        return self._stored.rows

    def __getitem__(self, index: Index) -> RowArray:
        """Return one row, (sequence_length), or several, (rows, sequence_length).

        A row or a slice of one shard in stored order is a read-only view of the memory-mapped file, unless another
        dtype was given.

        Args:
            index: a row number, a slice, or an array or list of row numbers; negative numbers count from the end.
        """
        if isinstance(index, int | np.integer):
            row = number_of(index, len(self), "row")
            one: RowArray = self.tokens(row, row + 1)[0]
            return one
        if isinstance(index, slice):
            first, last, step = index.indices(len(self))
            if step == 1:
                return self.tokens(first, max(first, last))
        return self._typed(self._take(self.numbers(index), self._stored.tokens))

    def __iter__(self) -> Iterator[RowArray]:
        step = max(1, _AT_ONCE // self.sequence_length)
        for first in range(0, len(self), step):
            yield from self.tokens(first, min(first + step, len(self)))

    def tokens(self, first: int, last: int) -> RowArray:
        """Return rows ``first:last``, (rows, sequence_length)."""
        return self._typed(self._stored.tokens.between(first, last))

    def with_segments(self, rows: I64) -> tuple[RowArray, Segments]:
        """Return the tokens of these rows (from 0), (rows, sequence_length), and their segments."""
        segments = self.segments_of(rows)
        return self._typed(self._take_by_segments(rows, segments, self._stored.tokens)), segments

    def loss(self, rows: I64, segments: Segments | None = None) -> RowArray | None:
        """Return the loss of these rows (from 0): (rows, sequence_length), 1 for tokens that train, 0 for others.

        Args:
            segments: of these rows, if they have been read already.

        Returns:
            The loss; None if the dataset has no loss, so that all tokens but padding train.
        """
        column = self._stored.loss
        if column is None:
            return None
        return self._take(rows, column) if segments is None else self._take_by_segments(rows, segments, column)

    def segments(self, row: int) -> npt.NDArray[Any]:
        """Return the segments of one row, in order: document, start, length, repeated. In stored order they are a view.

        Document -1 is padding, -2 an EOS that the strategy inserted.
        """
        return self._stored.segments.view(number_of(row, len(self), "row"))

    def segments_of(self, rows: I64) -> Segments:
        """Return the segments of these rows (from 0), as columns."""
        return self._stored.segments.take(rows)

    def numbers(self, index: Index) -> I64:
        """Return the numbers of the rows at an index, as `numbers_of` does."""
        return numbers_of(index, len(self), "row")

    def stored_numbers(self, rows: I64) -> I64 | None:
        """Return the numbers of these rows in stored order; None if rows are made of parts of stored rows."""
        return rows

    @property
    def order(self) -> Ints:
        """The number of the stored atom at each place, as `Dataset.order` has it: (atoms)."""
        atoms = StoredPlan(self._stored, whole=False).movable_atoms
        return np.arange(atoms, dtype=index_type(atoms))

    def _take(self, rows: I64, column: RowColumn) -> RowArray:
        """Copy the tokens of some rows, or their loss.

        Args:
            column: the column to copy from: tokens, or loss.
        """
        return column.take(rows)

    def _take_by_segments(self, rows: I64, segments: Segments, column: RowColumn) -> RowArray:
        return column.gathered(segments) if isinstance(column, GatheredColumn) else self._take(rows, column)

    def _typed(self, tokens: RowArray) -> RowArray:
        return tokens.astype(self.dtype, copy=False)


class ComputedRows(Rows, ABC):
    """Rows that are computed when they are read: gathered by their segments from stores, or made of stored rows.

    Args:
        pad_id: id of the padding that fills short rows.
    """

    def __init__(self, stored: PackedBucket, pad_id: int, dtype: str | None) -> None:
        super().__init__(stored, dtype)
        self._pad_id = pad_id

    def tokens(self, first: int, last: int) -> RowArray:
        return self._typed(self._take(np.arange(first, last), self._stored.tokens))

    def segments(self, row: int) -> npt.NDArray[Any]:
        return to_table(self.segments_of(np.array([number_of(row, len(self), "row")])))

    def stored_numbers(self, rows: I64) -> I64 | None:
        return None

    @property
    def order(self) -> Ints:
        what = "these rows are packed anew, or cut anew from rotated lanes: no order of the stored rows gives them"
        remedy = "write them, with `packtool pack --epoch N` or `packtool shuffle --method partial --epoch N`"
        raise UsageError("no-order", what, remedy=remedy, where=str(self._stored.shards.place))

    def _take(self, rows: I64, column: RowColumn) -> RowArray:
        if isinstance(column, GatheredColumn):
            return column.gathered(self.segments_of(rows))
        return self._assemble(rows, column).reshape(len(rows), self.sequence_length)

    @abstractmethod
    def _assemble(self, rows: I64, column: StoredColumn) -> RowArray:
        """Make some rows of parts of stored rows."""

    def _padding(self, shape: tuple[int, ...], column: StoredColumn) -> RowArray:
        return np.full(shape, self._pad_id if column is self._stored.tokens else 0, column.dtype)


class ReorderedRows(ComputedRows):
    """The rows of one length in another order, of the stored plan or, if tokens are gathered, of another plan.

    Args:
        stored: the stored rows; with another plan, stored rows of the same documents.
        plan: of these rows.
        order: the number of the movable atom at each place.
    """

    def __init__(self, stored: PackedBucket, plan: Plan, order: Ints, pad_id: int, dtype: str | None = None) -> None:
        super().__init__(stored, pad_id, dtype)
        self._layout = Layout(plan, order)
        self._unit = plan.unit
        self._stored_atoms = isinstance(plan, StoredPlan)
        self._whole = self._stored_atoms and plan.unit == plan.sequence_length

    def __len__(self) -> int:
        return self._layout.rows

    def segments_of(self, rows: I64) -> Segments:
        stored = self.stored_numbers(rows)
        return self._layout.segments_of(rows) if stored is None else self._stored.segments.take(stored)

    def stored_numbers(self, rows: I64) -> I64 | None:
        return self._layout.units(rows) if self._whole else None

    @property
    def order(self) -> Ints:
        if self._layout.order is None or not self._stored_atoms:
            return super().order
        order = self._layout.order.view()
        order.setflags(write=False)  # rows are read by this very array
        return order

    def _assemble(self, rows: I64, column: StoredColumn) -> RowArray:
        stored = self.stored_numbers(rows)
        if stored is not None:
            return column.take(stored)
        units, there = self._layout.units_of(rows)
        tokens = column.parts(*np.divmod(units, self.sequence_length // self._unit), self._unit)
        if there.all():
            return tokens
        out = self._padding((len(there), self._unit), column)
        out[there] = tokens
        return out


class RotatedRows(ComputedRows):
    """The rows of another epoch of the partial shuffle, which are made of parts of stored rows.

    Args:
        stored: the rows of the stored epoch.
        plan: of the rows of the other epoch.
    """

    def __init__(self, stored: PackedBucket, plan: RotatedPlan, pad_id: int, dtype: str | None = None) -> None:
        super().__init__(stored, pad_id, dtype)
        self._plan = plan

    def segments_of(self, rows: I64) -> Segments:
        length = self.sequence_length
        return join(pad(self._plan.segments(rows), length), length, length)

    def _assemble(self, rows: I64, column: StoredColumn) -> RowArray:
        length, parts = self.sequence_length, self._plan.parts(rows)
        stored, number = np.unique(parts.document, return_inverse=True)
        source = ranges(number * length + parts.start, parts.length, offsets_of(parts.length))
        tokens = parts.tokens()
        out = self._padding((len(rows) * length,), column)
        places = ranges(np.arange(len(rows)) * length, tokens, offsets_of(tokens))
        out[places] = column.take(stored).reshape(-1)[source]
        return out
