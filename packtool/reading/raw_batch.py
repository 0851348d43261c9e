"""Rows as they were read, before a batch is made of them: a fraction of its size, so workers send these."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from packtool.planning.plan import I64, INSERTED_EOS, PADDING, Segments, offsets_of, ranges
from packtool.reading.batch import FIELDS, IGNORED, Batch, longest, make_batch
from packtool.reading.column_fields import Values
from packtool.reading.rows import RowArray


class RawBatch(NamedTuple):
    """Rows of one length."""

    tokens: RowArray  # (rows, sequence length), as they are stored
    segments: Segments | None  # segments of these rows; None if no field of the batch needs them
    loss: RowArray | None  # (rows, sequence length) of 0 and 1; None if all tokens train
    following: I64 | None = None  # (rows) targets of the rows' last tokens, as in `make_batch`; or None
    documents: Sequence[int] = ()  # documents in each token store, if the batch has `source`
    source: npt.NDArray[np.int32] | None = None  # (rows) int32: the source of a blend that each row is from
    columns: Mapping[str, Values] | None = None  # values of the segments' documents, by column; None without columns

    def batch(self, **options: Any) -> Batch:
        """Build the training batch; `options` as in `packtool.reading.make_batch`."""
        fields = options.pop("fields", FIELDS)
        derived = [name for name in fields if name != "source"]
        read = (self.tokens, self.segments, self.loss, self.following, self.columns)
        batch = make_batch(*read, fields=derived, **options)
        if "source" not in fields:
            return batch
        length = self.tokens.shape[1]
        if options.get("trim") and self.segments is not None:
            length = longest(self.segments, length)
        length -= options.get("extra_token", False)
        if self.source is not None:
            batch["source"] = np.full((len(self.source), length), self.source[:, None])  # faster than np.repeat
        elif self.segments is not None:
            batch["source"] = _stores_of(self.segments, self.documents, self.tokens.shape)[:, :length]
        return batch

    def split(self, rows: Sequence[int]) -> list[RawBatch]:
        """Split into consecutive batches with these numbers of rows, without copying.

        >>> two = RawBatch(np.array([[5, 9], [6, 9]]), _whole(2, 2), None).split([1, 1])
        >>> [(each.tokens.tolist(), each.segments.offsets.tolist()) for each in two]
        [([[5, 9]], [0, 1]), ([[6, 9]], [0, 1])]
        """
        parts = []
        for first, last in pairwise([0, *accumulate(rows)]):
            columns: dict[str, Any] = {}
            for name in ("tokens", "segments", "loss", "following", "source"):
                column = getattr(self, name)
                if column is not None:
                    columns[name] = column[first:last]
            if self.columns is not None and self.segments is not None:
                inside = slice(*self.segments.offsets[[first, last]])
                columns["columns"] = {name: values[inside] for name, values in self.columns.items()}
            parts.append(self._replace(**columns))
        return parts


def of_no_rows(length: int) -> RawBatch:
    """Return a raw batch without rows, whose rows would have this length.

    >>> of_no_rows(8).batch()["labels"].shape
    (0, 8)
    """
    return RawBatch(np.empty((0, length), np.uint16), _whole(0, length), None)


def joined_rows(rows: int, parts: Iterable[tuple[I64, RawBatch]]) -> RawBatch:
    """Join rows that were read in parts.

    A part without segments has rows of one segment each; rows with padding always have segments.

    Args:
        rows: number of rows in all.
        parts: the places of a part's rows among all rows, and the part.

    >>> one, two = (RawBatch(np.array([[number, 9]]), None, None) for number in (5, 6))
    >>> joined_rows(2, [(np.array([1]), one), (np.array([0]), two)]).tokens.tolist()
    [[6, 9], [5, 9]]
    """
    read: list[tuple[I64, RawBatch]] = []
    tokens: RowArray | None = None
    for place, part in parts:
        if len(place) == rows:
            return part
        if tokens is None:
            tokens = np.empty((rows, part.tokens.shape[1]), part.tokens.dtype)
        tokens[place] = part.tokens  # in this loop, while the tokens are in the processor's cache
        read.append((place, part._replace(tokens=tokens)))  # the part's own are not needed any more
    assert tokens is not None  # there is a part
    segments = loss = following = columns = None
    if any(part.segments is not None for _, part in read):
        in_parts = _segments_in_parts(read)
        order = np.argsort(np.concatenate([place for place, _ in read]))
        counts = np.diff(in_parts.offsets)[order]
        offsets = offsets_of(counts)
        at = ranges(in_parts.offsets[order], counts, offsets)
        segments = in_parts.at(at, offsets)
        columns = _joined_columns([part.columns for _, part in read], at)
    if any(part.loss is not None for _, part in read):
        loss = np.ones(tokens.shape, np.uint8)
        for place, part in read:
            if part.loss is not None:
                loss[place] = part.loss
    if any(part.following is not None for _, part in read):
        following = np.full(rows, IGNORED)
        for place, part in read:
            if part.following is not None:
                following[place] = part.following
    return RawBatch(tokens, segments, loss, following, read[0][1].documents, columns=columns)


def _segments_in_parts(read: Sequence[tuple[I64, RawBatch]]) -> Segments:
    """Return the segments of rows that were read in parts, part by part."""
    parts = []
    for place, part in read:
        segments = part.segments
        if segments is None:
            segments = _whole(len(place), part.tokens.shape[1])
        parts.append(segments)
    return Segments.concatenate(parts)


def _joined_columns(parts: Sequence[Mapping[str, Values] | None], order: I64) -> dict[str, Values] | None:
    """Join the columns of rows that were read in parts; all parts have the same columns.

    Args:
        order: the order of all segments, laid end to end part by part.
    """
    if not parts or parts[0] is None:
        return None
    out = {}
    for name in parts[0]:
        out[name] = np.concatenate([part[name] for part in parts if part is not None])[order]
    return out


def _whole(rows: int, length: int) -> Segments:
    """Return the segments of rows that are one segment each."""
    zeros = np.zeros(rows, np.int64)
    return Segments(zeros, zeros, np.full(rows, length), zeros, np.arange(rows + 1))


def _stores_of(segments: Segments, documents: Sequence[int], shape: tuple[int, ...]) -> npt.NDArray[np.int32]:
    """Return the numbers of the stores that tokens are from, -1 for padding; an inserted EOS belongs to its document.

    Args:
        segments: of the rows.
        documents: number of documents in each store; they are numbered through all stores.
        shape: (rows, tokens in a row).

    >>> one = np.array
    >>> two = Segments(one([1, 4, -2, -1]), one([0, 0, 0, 0]), one([2, 1, 1, 2]), one([0, 0, 0, 0]), one([0, 4]))
    >>> _stores_of(two, [3, 5], (1, 6)).tolist()
    [[0, 0, 1, 1, -1, -1]]
    """
    store = np.searchsorted(offsets_of(np.array(documents, np.int64)), segments.document, side="right") - 1
    store[segments.document == PADDING] = -1
    # The last segment before it that is no inserted EOS.
    named = np.where(segments.document == INSERTED_EOS, 0, np.arange(len(store)))
    return np.repeat(store[np.maximum.accumulate(named)].astype(np.int32), segments.length).reshape(shape)
