"""How well mixed the rows of a dataset are: where corpus neighbours went, and what a batch is made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from packtool.metrics.ratios import quantile, ratio
from packtool.plan import I64, Segments, distinct, offsets_of

_PAIRS = 1 << 20  # neighbouring documents that are followed, spread evenly over the corpus


@dataclass(frozen=True, slots=True)
class Spread:
    """A count over whole batches.

    Attributes:
        mean: over batches.
        min: the least.
        max: the most.
    """

    mean: float
    min: int
    max: int


@dataclass(frozen=True, slots=True)
class SourceMix:
    """One input store in whole batches: its share of their tokens, padding and inserted EOS not counted.

    Attributes:
        tokens: in all rows, repeated ones included.
        share: of the tokens of all rows.
        min: the least share in a batch.
        max: the largest.
        deviation: standard deviation of the share over batches.
    """

    tokens: int
    share: float
    min: float
    max: float
    deviation: float


@dataclass(frozen=True, slots=True)
class Mixed:
    """How rows are mixed. A pair is two documents that follow each other in the corpus.

    Attributes:
        sequence_length: tokens in a row.
        rows: in the dataset (or bucket).
        batch_size: rows in a batch; the last, smaller batch is left out of the counts over batches.
        pairs: pairs that were followed.
        same_row: share of pairs that begin in the same row.
        same_batch: share of pairs that begin in the same batch.
        median_distance: rows from where one begins to where the other begins, over pairs in different rows.
        mean_distance: the same, averaged.
        expected_distance: mean distance of two different rows drawn at random, (rows + 1) / 3; 0 for fewer than two.
        documents: distinct documents in a batch.
        sources: distinct input stores in a batch.
        source_mix: of each input store, how evenly batches hold it.
    """

    sequence_length: int
    rows: int
    batch_size: int
    pairs: int
    same_row: float
    same_batch: float
    median_distance: int
    mean_distance: float
    expected_distance: float
    documents: Spread
    sources: Spread
    source_mix: list[SourceMix]


@dataclass(frozen=True, slots=True)
class BatchMix:
    """How evenly batches hold the input stores.

    Attributes:
        sequence_length: tokens in a row.
        batch_size: rows in a batch; the last, smaller batch is left out of the counts over batches.
        sources: of each input store.
    """

    sequence_length: int
    batch_size: int
    sources: list[SourceMix]


class SourceMixing:
    """Counts of which stores rows in their stored order come; memory does not grow with them.

    Args:
        store_documents: documents of each input store, in order.
        sequence_length: tokens in a row.
        batch_size: rows in a batch.

    >>> one = np.array
    >>> mixing = SourceMixing([1, 1], sequence_length=4, batch_size=1)
    >>> mixing.add(Segments(one([0, 1, 1]), one([0, 0, 1]), one([3, 1, 4]), one([0] * 3), one([0, 2, 3])))
    >>> [(source.tokens, source.min, source.max) for source in mixing.result().sources]
    [(3, 0.0, 0.75), (5, 0.25, 1.0)]
    """

    def __init__(self, store_documents: Sequence[int], sequence_length: int, batch_size: int) -> None:
        self.sequence_length = sequence_length
        self.batch_size = batch_size
        self._stores = offsets_of(np.array(store_documents, np.int64))
        self._mix = _SourceMixing(len(store_documents))

    def add(self, rows: Segments) -> None:
        """Count the next rows; all calls but the last bring whole batches."""
        held = rows.document >= 0
        batch = rows.group_of()[held] // self.batch_size
        stored = np.searchsorted(self._stores, rows.document[held], side="right") - 1
        batches, whole = -(-rows.groups // self.batch_size), rows.groups // self.batch_size
        self._mix.add(batch, stored, rows.length[held], batches, whole)

    def result(self) -> BatchMix:
        """What the rows so far amount to."""
        return BatchMix(self.sequence_length, self.batch_size, self._mix.result())


class Mixing:
    """Counts rows in their stored order; memory is bounded by 16 MiB and two numbers for each batch.

    Args:
        store_documents: documents of each input store, in order.
        sequence_length: tokens in a row.
        batch_size: rows in a batch.
    """

    def __init__(self, store_documents: Sequence[int], sequence_length: int, batch_size: int) -> None:
        self.sequence_length = sequence_length
        self.batch_size = batch_size
        self._stores = offsets_of(np.array(store_documents, np.int64))
        self._documents = int(self._stores[-1])
        self._stride = max(1, self._documents // _PAIRS)
        followed = -(-self._documents // self._stride) * (1 if self._stride == 1 else 2)
        self._first_row: I64 = np.full(followed, -1, np.int64)
        self._rows = 0
        self._documents_in: list[I64] = []
        self._sources_in: list[I64] = []
        self._mix = SourceMixing(store_documents, sequence_length, batch_size)

    def add(self, rows: Segments) -> None:
        """Count the next rows; all calls but the last bring whole batches."""
        if self._rows % self.batch_size:
            raise ValueError("only the last rows may fall short of a batch")
        held = rows.document >= 0
        document = rows.document[held]
        row = rows.group_of()[held]
        begins = rows.start[held] == 0
        self._follow(document[begins], row[begins] + self._rows)
        batches = -(-rows.groups // self.batch_size)
        key = distinct(row // self.batch_size * self._documents + document)
        self._mix.add(rows)
        batch, document = np.divmod(key, max(1, self._documents))
        self._documents_in.append(np.bincount(batch, minlength=batches))
        source = np.searchsorted(self._stores, document, side="right") - 1
        key = distinct(batch * len(self._stores) + source)
        self._sources_in.append(np.bincount(key // len(self._stores), minlength=batches))
        self._rows += rows.groups

    def _follow(self, document: I64, row: I64) -> None:
        """Note the rows in which these documents begin; other rows may hold more of them, earlier or later."""
        if self._stride == 1:
            place = document
        else:
            lot, inside = np.divmod(document, self._stride)
            followed = inside < 2
            place, row = (2 * lot + inside)[followed], row[followed]
        self._first_row[place] = row

    def result(self) -> Mixed:
        """What the rows so far amount to."""
        step = 1 if self._stride == 1 else 2
        one, other = self._first_row[:-1:step], self._first_row[1::step]
        both = (one[: len(other)] >= 0) & (other >= 0)
        one, other = one[: len(other)][both], other[both]
        distance = np.abs(one - other)
        apart = distance[distance > 0]
        whole = self._rows // self.batch_size
        return Mixed(
            sequence_length=self.sequence_length,
            rows=self._rows,
            batch_size=self.batch_size,
            pairs=len(distance),
            same_row=ratio(int(np.count_nonzero(distance == 0)), len(distance)),
            same_batch=ratio(int(np.count_nonzero(one // self.batch_size == other // self.batch_size)), len(distance)),
            median_distance=quantile(np.bincount(apart), 0.5) if len(apart) else 0,
            mean_distance=ratio(int(apart.sum()), len(apart)),
            expected_distance=(self._rows + 1) / 3 if self._rows > 1 else 0.0,
            documents=_spread(self._documents_in, whole),
            sources=_spread(self._sources_in, whole),
            source_mix=self._mix.result().sources,
        )


class _SourceMixing:
    """Running sums of each store's share of batches."""

    def __init__(self, stores: int) -> None:
        self._tokens: I64 = np.zeros(stores, np.int64)
        self._batches = 0
        self._sum, self._squares = np.zeros(stores), np.zeros(stores)
        self._min, self._max = np.full(stores, np.inf), np.zeros(stores)
        self._rest = np.zeros(stores)

    def add(self, batch: I64, store: I64, length: I64, batches: int, whole: int) -> None:
        """Count segments: the batch and the store of each, and its tokens; the last batch may not be whole."""
        stores = len(self._tokens)
        tokens = np.bincount(batch * stores + store, weights=length, minlength=batches * stores)
        tokens = tokens.reshape(batches, stores)
        self._tokens += tokens.sum(axis=0).astype(np.int64)
        shares = tokens / np.maximum(tokens.sum(axis=1, keepdims=True), 1)
        if batches > whole:
            self._rest = shares[-1]
        if whole:
            shares = shares[:whole]
            self._batches += whole
            self._sum += shares.sum(axis=0)
            self._squares += (shares**2).sum(axis=0)
            self._min = np.minimum(self._min, shares.min(axis=0))
            self._max = np.maximum(self._max, shares.max(axis=0))

    def result(self) -> list[SourceMix]:
        """Over whole batches; over the only one where none is whole."""
        if self._batches:
            mean = self._sum / self._batches
            deviation = np.sqrt(np.maximum(self._squares / self._batches - mean**2, 0))
            low, high = self._min, self._max
        else:
            low, high, deviation = self._rest, self._rest, np.zeros(len(self._rest))
        total = int(self._tokens.sum())
        return [
            SourceMix(int(tokens), ratio(int(tokens), total), float(a), float(b), float(each))
            for tokens, a, b, each in zip(self._tokens, low, high, deviation, strict=True)
        ]


def _spread(counts: list[I64], whole_batches: int) -> Spread:
    values = np.concatenate([np.zeros(0, np.int64), *counts])
    values = values[:whole_batches] if whole_batches else values
    if not len(values):
        return Spread(0.0, 0, 0)
    return Spread(ratio(int(values.sum()), len(values)), int(values.min()), int(values.max()))
