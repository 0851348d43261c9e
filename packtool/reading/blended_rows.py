"""A blend as a sequence of rows: a view of its stream, to look at and to read batches of."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from packtool.blending.blend import Blend
from packtool.errors import UsageError
from packtool.planning.plan import I64
from packtool.reading.batch import Batch
from packtool.reading.column_fields import Names
from packtool.reading.dataset import BucketDataset, open_recipe
from packtool.reading.order import BlendOrder
from packtool.reading.rows import Index, RowArray, number_of, numbers_of
from packtool.reading.stream import Stream

_ROWS_AT_ONCE = 64  # rows that an iteration reads at a time


class BlendedRows:
    """The rows of a blend, in the order in which they are trained on: a sequence, and batches of them.

    It is pickled with its arguments, without open files.

    Args:
        stream: of the blend.
        dtype: of the tokens; None as stored.

    Attributes:
        sources: names of the sources; `source` in a batch is a place in this list.
        sequence_length: tokens in a row.
    """

    def __init__(self, stream: Stream, dtype: np.dtype[Any] | None) -> None:
        assert isinstance(stream.order, BlendOrder)
        stream.order.require_paths()
        self._stream = stream
        self._dtype = dtype
        self.sources = list(stream.names)
        self.sequence_length = stream.source(0).lengths[0]

    def __len__(self) -> int:
        return len(self._stream)

    def __getitem__(self, index: Index) -> RowArray:
        """Return one row, (sequence_length), or several, (rows, sequence_length)."""
        if isinstance(index, int | np.integer):
            one: RowArray = self[[number_of(index, len(self), "row")]][0]
            return one
        tokens = self._stream.read(self._located(index), {"fields": ()}).tokens
        return tokens if self._dtype is None else tokens.astype(self._dtype, copy=False)

    def __iter__(self) -> Iterator[RowArray]:
        for first in range(0, len(self), _ROWS_AT_ONCE):
            yield from self[first : first + _ROWS_AT_ONCE]

    def __repr__(self) -> str:
        return repr(self._stream)

    @property
    def columns(self) -> dict[str, Names]:
        """The kept columns of documents by name, with the categories of all sources; None for columns of numbers."""
        return self._stream.columns

    def origins(self, index: Index) -> tuple[I64, I64]:
        """Return the sources of some rows, and the rows' numbers in their sources, counted through all epochs."""
        return self._stream.order.locate(numbers_of(index, len(self), "row"))

    def segments(self, index: int) -> npt.NDArray[Any]:
        """Return the segments of one row, as `Dataset.segments` does; documents are numbered in its source."""
        [[source, epoch, length, row]] = self._located([index]).tolist()
        return self._stream.source(source).epoch(epoch).buckets[length].segments(row)

    def epoch(self, number: int, *, seed: int | None = None, repack: bool = False) -> BlendedRows:
        """Return the blend itself: its rows are of all epochs of its sources, and there is no other than number 0.

        Raises:
            UsageError: another number, or what a blend says of each of its sources.
        """
        if number != 0 or seed is not None or repack:
            what, remedy = "a blend is one run, with all epochs of its sources", "open one of its sources"
            raise UsageError("bad-option", what, remedy=remedy, where="epoch")
        return self

    def batch(self, index: Index, *, fields: Collection[str] | None = None, **options: Any) -> Batch:
        """Build a training batch of some rows.

        Args:
            fields: as in `packtool.reading.batch.make_batch`, and `source`; None for the default fields of the
                sources, and `source`.
            options: as in `packtool.reading.batch.make_batch`.
        """
        fields = self._stream.options["fields"] if fields is None else fields
        options = {"fields": fields, **options}
        return self._stream.read(self._located(index), options).batch(**options)

    def _located(self, index: Index) -> I64:
        return self._stream.located(numbers_of(index, len(self), "row"))


def open_blend(blend: Blend, dtype: str | None = None, **options: Any) -> BlendedRows | BucketDataset:
    """Open a blend as a sequence of rows, or, if it is one dataset of several row lengths, of batches.

    Args:
        dtype, options: as in `packtool.open`.
    """
    stream = Stream(blend, **options)
    typed = None if dtype is None else np.dtype(dtype)
    if not stream.bucketed:
        return BlendedRows(stream, typed)
    first = stream.source(0).epoch(0)
    batches = open_recipe(replace(first.recipe, dtype=None if typed is None else typed.str))
    assert isinstance(batches, BucketDataset)
    return batches
