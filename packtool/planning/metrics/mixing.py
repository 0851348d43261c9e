"""Measure how well mixed a dataset is: where corpus neighbours went, and what batches hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from packtool.planning.metrics.ratios import quantile, ratio
from packtool.planning.plan import I64, Segments, distinct, offsets_of

MIXING_BATCH = 64
"""Rows in a batch where no batch size is given."""
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
class StoreShare:
    """One input store in whole batches: its share of their tokens, padding and inserted EOS not counted.

    Attributes:
        tokens: in all rows, repeated ones included.
        share: of the tokens of all rows.
        min: the smallest share in a batch.
        max: the largest.
        deviation: standard deviation of the share over batches.
    """

    tokens: int
    share: float
    min: float
    max: float
    deviation: float


@dataclass(frozen=True, slots=True)
class PairDistances:
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
    source_mix: list[StoreShare]


@dataclass(frozen=True, slots=True)
class BatchShares:
    """How evenly batches hold the input stores.

    Attributes:
        sequence_length: tokens in a row.
        batch_size: rows in a batch; the last, smaller batch is left out of the counts over batches.
        sources: of each input store.
    """

    sequence_length: int
    batch_size: int
    sources: list[StoreShare]


class StoreShareCounter:
    """Counts of which stores rows in their stored order come; memory does not grow with them.

    Args:
        store_documents: documents of each input store, in order.
        sequence_length: tokens in a row.
        batch_size: rows in a batch.

    >>> one = np.array
    >>> mixing = StoreShareCounter([1, 1], sequence_length=4, batch_size=1)
    >>> mixing.add(Segments(one([0, 1, 1]), one([0, 0, 1]), one([3, 1, 4]), one([0] * 3), one([0, 2, 3])))
    >>> [(source.tokens, source.min, source.max) for source in mixing.result().sources]
    [(3, 0.0, 0.75), (5, 0.25, 1.0)]
    """

    def __init__(self, store_documents: Sequence[int], sequence_length: int, batch_size: int) -> None:
        self.sequence_length = sequence_length
        self.batch_size = batch_size
        self._stores = offsets_of(np.array(store_documents, np.int64))
        self._tokens: I64 = np.zeros(len(store_documents), np.int64)
        self._batches = 0
        self._sum, self._squares = np.zeros(len(store_documents)), np.zeros(len(store_documents))
        self._min, self._max = np.full(len(store_documents), np.inf), np.zeros(len(store_documents))
        self._rest = np.zeros(len(store_documents))

    def add(self, rows: Segments) -> None:
        """Count the next rows; all calls but the last bring whole batches."""
        self.include(self.tokens(rows), rows.groups)

    def tokens(self, rows: Segments) -> npt.NDArray[np.float64]:
        """Count tokens of each store in each batch of these rows: (batches, stores)."""
        of_documents, stores = rows.document >= 0, len(self._stores) - 1
        batch, batches = rows.group_of()[of_documents] // self.batch_size, -(-rows.groups // self.batch_size)
        store = np.searchsorted(self._stores, rows.document[of_documents], side="right") - 1
        counted: npt.NDArray[Any] = np.bincount(
            batch * stores + store, weights=rows.length[of_documents], minlength=batches * stores
        )
        return counted.reshape(batches, stores)

    def include(self, tokens: npt.NDArray[np.float64], rows: int) -> None:
        """Count the `tokens` of the next rows."""
        whole = rows // self.batch_size
        self._tokens += tokens.sum(axis=0).astype(np.int64)
        shares = tokens / np.maximum(tokens.sum(axis=1, keepdims=True), 1)
        if len(tokens) > whole:
            self._rest = shares[-1]
        if whole:
            shares = shares[:whole]
            self._batches += whole
            self._sum += shares.sum(axis=0)
            self._squares += (shares**2).sum(axis=0)
            self._min = np.minimum(self._min, shares.min(axis=0))
            self._max = np.maximum(self._max, shares.max(axis=0))

    def result(self) -> BatchShares:
        """Sum up the rows so far, over whole batches; if no batch is whole, over the only one."""
        if self._batches:
            mean = self._sum / self._batches
            variance = self._squares / self._batches - mean**2
            deviation = np.sqrt(np.maximum(variance, 0))  # rounding may make a variance of 0 negative
            least, most = self._min, self._max
        else:
            least, most, deviation = self._rest, self._rest, np.zeros(len(self._rest))
        total = int(self._tokens.sum())
        columns = self._tokens.tolist(), least.tolist(), most.tolist(), deviation.tolist()
        sources = []
        for tokens, low, high, spread in zip(*columns, strict=True):
            sources.append(StoreShare(tokens, ratio(tokens, total), low, high, spread))
        return BatchShares(self.sequence_length, self.batch_size, sources)


class PairDistancePart(NamedTuple):
    """The contribution of some rows to `PairDistanceCounter`.

    Attributes:
        rows: how many.
        places, at: documents that are followed, and the rows in which they begin.
        documents_in, sources_in: distinct documents and stores in each batch.
        tokens: of each store in each batch: (batches, stores).
    """

    rows: int
    places: I64
    at: I64
    documents_in: I64
    sources_in: I64
    tokens: npt.NDArray[np.float64]


class PairDistanceCounter:
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
        self._mix = StoreShareCounter(store_documents, sequence_length, batch_size)

    def add(self, rows: Segments) -> None:
        """Count the next rows; all calls but the last bring whole batches."""
        self.include(self.measure(rows, self._rows))

    def measure(self, rows: Segments, first_row: int) -> PairDistancePart:
        """Measure the contribution of rows from `first_row` on, in any process."""
        of_documents = rows.document >= 0
        document = rows.document[of_documents]
        row = rows.group_of()[of_documents]
        begins = rows.start[of_documents] == 0
        places, at = self._followed(document[begins], row[begins] + first_row)
        batches = -(-rows.groups // self.batch_size)
        key = distinct(row // self.batch_size * self._documents + document)
        batch, document = np.divmod(key, max(1, self._documents))
        documents_in = np.bincount(batch, minlength=batches)
        source = np.searchsorted(self._stores, document, side="right") - 1
        key = distinct(batch * len(self._stores) + source)
        sources_in = np.bincount(key // len(self._stores), minlength=batches)
        return PairDistancePart(rows.groups, places, at, documents_in, sources_in, self._mix.tokens(rows))

    def include(self, part: PairDistancePart) -> None:
        """Add the counts of the next rows."""
        if self._rows % self.batch_size:
            raise ValueError("only the last rows may fall short of a batch")
        self._first_row[part.places] = part.at
        self._documents_in.append(part.documents_in)
        self._sources_in.append(part.sources_in)
        self._mix.include(part.tokens, part.rows)
        self._rows += part.rows

    def _followed(self, document: I64, row: I64) -> tuple[I64, I64]:
        """Select the followed documents among the documents that begin in some rows; return their places and rows."""
        if self._stride == 1:
            return document, row
        lot, inside = np.divmod(document, self._stride)
        followed = inside < 2
        return (2 * lot + inside)[followed], row[followed]

    def result(self) -> PairDistances:
        """Sum up the rows so far."""
        first, second = self._rows_of_pairs()
        distance = np.abs(first - second)
        apart = distance[distance > 0]
        same_batch = first // self.batch_size == second // self.batch_size
        whole = self._rows // self.batch_size
        return PairDistances(
            sequence_length=self.sequence_length,
            rows=self._rows,
            batch_size=self.batch_size,
            pairs=len(distance),
            same_row=ratio(int(np.count_nonzero(distance == 0)), len(distance)),
            same_batch=ratio(int(np.count_nonzero(same_batch)), len(distance)),
            median_distance=quantile(np.bincount(apart), 0.5),
            mean_distance=ratio(int(apart.sum()), len(apart)),
            expected_distance=(self._rows + 1) / 3 if self._rows > 1 else 0.0,
            documents=_spread(self._documents_in, whole),
            sources=_spread(self._sources_in, whole),
            source_mix=self._mix.result().sources,
        )

    def _rows_of_pairs(self) -> tuple[I64, I64]:
        """Return the rows in which the first and the second document of each pair begin: (pairs) each.

        Pairs of which a document begins in no row, such as one that was left out, are not counted.
        """
        # If all documents are followed, each makes a pair with the next one. Otherwise pairs lie one after the other.
        step = 1 if self._stride == 1 else 2
        first, second = self._first_row[:-1:step], self._first_row[1::step]
        both = (first >= 0) & (second >= 0)
        return first[both], second[both]


def _spread(counts: list[I64], whole_batches: int) -> Spread:
    values = np.concatenate([np.zeros(0, np.int64), *counts])
    values = values[:whole_batches] if whole_batches else values
    if not len(values):
        return Spread(0.0, 0, 0)
    return Spread(ratio(int(values.sum()), len(values)), int(values.min()), int(values.max()))
