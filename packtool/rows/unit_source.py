"""Sources of units, with their segments and tokens: token stores under a plan, and packed datasets.

If a store has a loss, a token moves in a record with its loss; the tokens and loss of a row are separated once it is
complete.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from packtool.formats.bucket_shards import BucketShards, StoredColumn
from packtool.formats.names import LOSS, SEGMENT
from packtool.formats.on_demand import flat
from packtool.formats.packed import GatheredColumn
from packtool.formats.token_store import Corpus
from packtool.planning.arrays import Arrays
from packtool.planning.plan import I64, Plan, Segments, distinct, pad
from packtool.rows.gather import Gatherer, Locator, LossGatherer, copier
from packtool.rows.stored_plan import StoredPlan

Tokens: TypeAlias = npt.NDArray[Any]
Units: TypeAlias = tuple[Segments | None, Tokens]
"""The segments of some units, padding included, or None where they are not known; and their tokens, (units, unit), as
records with their loss where the source has it."""

_WIDE = 64  # bytes; units from here on are moved by memory copies, narrower ones by NumPy


class UnitSource(ABC):
    """The units of a plan with their tokens, read from any number of threads.

    Attributes:
        plan: whose units they are.
        dtype: of the tokens, or of records of tokens and loss.
        pad_id: what fills the last row.
        segments: number of segments, about; None where they are not known.
        loss: returns the loss of the tokens of segments; None where all of them train, or where the loss is known only
            together with the tokens.
    """

    loss: Callable[[Segments], npt.NDArray[np.uint8]] | None = None

    def __init__(self, plan: Plan, dtype: np.dtype[Any], pad_id: int, segments: int | None) -> None:
        self.plan = plan
        self.dtype = dtype
        self.pad_id = pad_id
        self.segments = segments

    @abstractmethod
    def prepare(self, arrays: Arrays) -> None:
        """Make the tables that `read` needs in these arrays."""

    @abstractmethod
    def read(self, units: I64) -> Units:
        """Read any units, in the order given; `memory_bytes` counts the memory that this needs."""

    @abstractmethod
    def scan(self, first: int, last: int) -> Units:
        """Read units ``first:last`` of the plan, with no more in memory than they take."""

    @abstractmethod
    def release(self) -> None:
        """Release the memory that maps what was read."""

    @property
    def unit_bytes(self) -> int:
        """Bytes of the tokens of a unit."""
        return self.plan.unit * self.dtype.itemsize

    @property
    def row_bytes(self) -> int:
        """Bytes of the tokens of all rows."""
        return self.plan.rows * self.plan.sequence_length * self.dtype.itemsize

    @property
    def memory_bytes(self) -> int:
        """Memory that all units would take, with their order."""
        return self.plan.units * self.unit_bytes + self.index_bytes

    @property
    def index_bytes(self) -> int:
        """Memory that their segments and order would take, without tokens."""
        return self.plan.units * 32 + (self.segments or 0) * SEGMENT.itemsize


class StoreSource(UnitSource):
    """Token stores under a plan that is not written yet."""

    def __init__(self, corpus: Corpus, plan: Plan, pad_id: int) -> None:
        dtype = corpus.dtype
        if corpus.has_loss:
            dtype = with_loss(dtype)
        super().__init__(plan, dtype, pad_id, segments=plan.units + corpus.documents)
        self._corpus = corpus
        self._gather = Gatherer(
            corpus.shards,
            Locator(corpus.shards, corpus.locate),
            dtype=corpus.dtype,
            pad_id=pad_id,
            eos_id=corpus.tokenizer.eos_id,
            longest_fill=plan.unit,
        )
        if corpus.has_loss:
            self.loss = LossGatherer.of(corpus, plan.sequence_length)

    def __reduce__(self) -> tuple[Any, ...]:
        return StoreSource, (self._corpus, self.plan, self.pad_id)

    def prepare(self, arrays: Arrays) -> None:
        self._corpus.locate(np.empty(0, np.int64))  # in the arrays of the corpus

    def read(self, units: I64) -> Units:
        segments = pad(self.plan.segments(units), self.plan.unit)
        tokens = self._gather(segments)
        if self.loss is not None:
            tokens = join_loss(tokens, self.loss(segments))
        return segments, tokens.reshape(-1, self.plan.unit)

    def scan(self, first: int, last: int) -> Units:
        return self.read(np.arange(first, last))

    def release(self) -> None:
        self._corpus.release()


class PackedSource(UnitSource):
    """One bucket of a packed dataset, whose units are put into another order."""

    plan: StoredPlan

    def __init__(self, plan: StoredPlan, pad_id: int) -> None:
        bucket, segments = plan.bucket, None
        if bucket.segments.exist:
            segments = sum(bucket.segments.counts) + plan.units * (plan.unit < plan.sequence_length)
        dtype = bucket.tokens.dtype
        if bucket.loss is not None:
            dtype = with_loss(dtype)
        super().__init__(plan, dtype, pad_id, segments)
        self._columns = bucket.columns
        self._copiers: list[_UnitCopier] = []
        for column in self._columns:
            if isinstance(column, StoredColumn):
                self._copiers.append(_UnitCopier(column, bucket.shards, plan.unit))

    def __reduce__(self) -> tuple[Any, ...]:
        return PackedSource, (self.plan, self.pad_id)

    def prepare(self, arrays: Arrays) -> None:
        if self.segments is not None:
            self.plan.prepare(arrays)

    def read(self, units: I64) -> Units:
        segments = None
        if self.segments is not None:
            segments = self.plan.segments(units)
        if not self._copiers:
            return segments, self._gathered(segments)
        return segments, join_loss(*(copy(units) for copy in self._copiers))

    def scan(self, first: int, last: int) -> Units:
        segments = None
        if self.segments is not None:
            segments = self.plan.scan(first, last)
        if not self._copiers:
            return segments, self._gathered(segments)
        per_row = self.plan.sequence_length // self.plan.unit
        row = first // per_row
        rows = [column.between(row, -(-last // per_row)) for column in self._columns]
        inside = slice(first - row * per_row, last - row * per_row)
        return segments, join_loss(*(column.reshape(-1, self.plan.unit)[inside] for column in rows))

    def _gathered(self, segments: Segments | None) -> Tokens:
        assert segments is not None, "a dataset without tokens has segments"
        gathered = []
        for column in self._columns:
            if isinstance(column, GatheredColumn):
                gathered.append(column.gathered(segments, self.plan.unit))
        return join_loss(*gathered)

    def release(self) -> None:
        self.plan.bucket.release()


class _UnitCopier:
    """Copies a column of units of equal size out of the shards of one bucket, in any order."""

    def __init__(self, column: StoredColumn, shards: BucketShards, unit: int) -> None:
        length = shards.entry.sequence_length
        self._unit = unit
        self._dtype = column.dtype
        self._shards = flat(column.arrays, length)
        self._first_units = shards.first_rows * (length // unit)
        self._copy = copier(self._shards, self._dtype)

    def __call__(self, units: I64) -> Tokens:
        if len(self._shards) == 1:
            return np.take(self._shards[0].reshape(-1, self._unit), units, axis=0)
        shard = np.searchsorted(self._first_units, units, side="right") - 1
        place = units - self._first_units[shard]
        if self._unit * self._dtype.itemsize >= _WIDE:
            return self._copy(shard, place * self._unit, np.full(len(units), self._unit)).reshape(-1, self._unit)
        out = np.empty((len(units), self._unit), self._dtype)
        for number in distinct(shard).tolist():
            here = np.flatnonzero(shard == number)
            out[here] = np.take(self._shards[number].reshape(-1, self._unit), place[here], axis=0)
        return out


def with_loss(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type of a token of this type together with its loss.

    >>> with_loss(np.dtype("<u2"))
    dtype([('token', '<u2'), ('loss', 'u1')])
    """
    return np.dtype([("token", dtype), ("loss", LOSS)])


def join_loss(tokens: Tokens, loss: Tokens | None = None) -> Tokens:
    """Join tokens and their loss into records; tokens without loss stay as they are.

    >>> join_loss(np.array([7, 8], "<u2"), np.array([0, 1], "u1")).tolist()
    [(7, 0), (8, 1)]
    """
    if loss is None:
        return tokens
    out = np.empty(tokens.shape, with_loss(tokens.dtype))
    out["token"], out["loss"] = tokens, loss
    return out


def split_loss(tokens: Tokens) -> tuple[Tokens, Tokens | None]:
    """Separate tokens and their loss; None for tokens without a loss."""
    if tokens.dtype.names is None:
        return tokens, None
    return tokens["token"], tokens["loss"]


def padding(shape: tuple[int, ...], dtype: np.dtype[Any], pad_id: int) -> Tokens:
    """Make padding of tokens, or of records of tokens and loss: it never trains.

    >>> padding((2,), with_loss(np.dtype("<u2")), 5).tolist()
    [(5, 0), (5, 0)]
    """
    out = np.zeros(shape, dtype)
    out[... if dtype.names is None else "token"] = pad_id
    return out
