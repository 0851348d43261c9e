"""Gather tokens: slices of memory-mapped shards, in any order, into one buffer. Nothing else moves tokens.

Arrow's string views are (buffer, offset, length) triples, which is what a segment table is; casting such an array to
contiguous binary is a loop of memory copies in C++. Consecutive segments of a shard are copied as one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from packtool.errors import DataError
from packtool.formats.names import LOSS
from packtool.formats.on_demand import OnDemand, joined_contents, sizes_of
from packtool.formats.token_store import Corpus
from packtool.places.bucket import REQUESTS
from packtool.places.slices import SliceReader
from packtool.places.store import RangedArray
from packtool.planning.plan import I64, INSERTED_EOS, PADDING, Segments, offsets_of

Slices = tuple[I64, I64, I64]
"""Slices of arrays: (numbers of their arrays, their first items, their lengths)."""
Locate = Callable[[I64, I64, I64], tuple[I64, I64]]
"""Documents, starts and lengths of segments, to the shards they lie in and the places of their first tokens there."""

_WINDOW = 1 << 30  # views hold 31-bit offsets: larger shards are seen through overlapping windows of twice this size
_INLINE = 12  # bytes; views this short hold their data themselves
_FEW = 256  # slices that Python's own join has copied before Arrow is ready to


class Gatherer:
    """Copies segments of documents out of token shards.

    Args:
        shards: 1-D arrays of this dtype.
        locate: finds segments in the shards.
        pad_id: written for segments of padding.
        eos_id: written for EOS that the strategy inserted.
        longest_fill: the longest segment of either, in tokens: the sequence length.
        read: reads slices of shards that memory does not hold.

    >>> store, one = np.array([5, 6, 0, 7, 8, 9, 0], np.uint16), np.array
    >>> in_shard_0 = lambda document, start, length: (document * 0, document * 3 + start)
    >>> gather = Gatherer([store], in_shard_0, dtype=store.dtype, pad_id=0, eos_id=0, longest_fill=4)
    >>> gather(Segments(one([1, -1, 0]), one([1, 0, 0]), one([2, 2, 3]), one([0, 0, 0]), one([0, 3])))
    array([8, 9, 0, 0, 5, 6, 0], dtype=uint16)
    """

    def __init__(
        self,
        shards: Sequence[npt.NDArray[Any]],
        locate: Locate,
        *,
        dtype: np.dtype[Any],
        pad_id: int,
        eos_id: int,
        longest_fill: int,
        read: SliceReader | None = None,
    ) -> None:
        self._padding, self._eos = len(shards), len(shards) + 1
        self._locate = locate
        self._read = read
        self._dtype = dtype
        self._fills = [np.full(longest_fill, fill, dtype) for fill in (pad_id, eos_id)]
        self._copy = copier(joined_contents([shards, self._fills]), dtype)

    def __call__(self, segments: Segments) -> npt.NDArray[Any]:
        """Gather the tokens of all segments, in order, as one 1-D array."""
        array, start, length = self._slices(segments)
        if self._read is None:
            return self._copy(array, start, length)
        # Padding and inserted EOS lie in memory, and nothing has to be read for them.
        stored = array < self._padding
        if np.count_nonzero(stored) == len(stored):
            parts: list[Any] = self._read(array, start, length)
        else:
            in_order = iter(self._read(array[stored], start[stored], length[stored]))
            parts = []
            for fill, count in zip((array - self._padding).tolist(), length.tolist(), strict=True):
                if fill < 0:
                    parts.append(next(in_order))
                else:
                    parts.append(self._fills[fill][:count])
        return np.frombuffer(b"".join(parts), self._dtype)

    def _slices(self, segments: Segments) -> Slices:
        """Locate the tokens of segments, in order; padding and inserted EOS lie in arrays after the shards."""
        document, start, length = segments.document, segments.start, segments.length
        real = (document >= 0).nonzero()[0]
        if len(real) == len(document):
            array, start = self._locate(document, start, length)
        else:
            located = self._locate(document.take(real), start.take(real), length.take(real))
            array, start = np.where(document == PADDING, self._padding, self._eos), np.zeros(len(document), np.int64)
            array[real], start[real] = located
        return coalesce(array, start, length)


class LossGatherer:
    """Copies the loss of segments of documents: 1 for tokens that train, 0 for others.

    All tokens of a store without the column train, and so does an EOS that the strategy inserts behind them. An EOS
    that it inserts behind a piece of a store with the column does not: the model would learn to stop in the middle of
    an answer. Padding does not train.

    Args:
        stores: the loss of each store's shards, 1-D; None where all its tokens train.
        shards: number of shards of each store.
        locate: finds segments in the shards of all stores.
        longest: the longest segment, in tokens: the sequence length.
        read: as in `Gatherer`.

    >>> chats, web, one = np.array([0, 1, 1, 0, 0, 1, 1], np.uint8), None, np.array
    >>> begin = one([[0, 0], [0, 3], [1, 0]])  # shard and place of documents 0 and 1, which are chats, and of 2
    >>> locate = lambda document, start, length: (begin[document, 0], begin[document, 1] + start)
    >>> gather = LossGatherer([[chats], web], [1, 1], locate, longest=4)
    >>> document, start, length = one([1, -2, -1, 2, 0]), one([1, 0, 0, 2, 0]), one([2, 1, 1, 3, 3])
    >>> rows = Segments(document, start, length, one([0] * 5), one([0, 3, 5]))
    >>> gather(rows)  # two tokens of document 1, an inserted EOS, padding; three of document 2, three of document 0
    array([0, 1, 0, 0, 1, 1, 1, 0, 1, 1], dtype=uint8)
    """

    def __init__(
        self,
        stores: Sequence[Sequence[npt.NDArray[Any]] | None],
        shards: Sequence[int],
        locate: Locate,
        *,
        longest: int,
        read: SliceReader | None = None,
    ) -> None:
        columns = joined_contents([store for store in stores if store is not None])
        known = np.repeat([store is not None for store in stores], shards)
        ones = len(columns) + 1  # the array that is filled for inserted EOS serves every token of other stores
        number = np.where(known, np.cumsum(known) - 1, ones)

        def in_columns(document: I64, start: I64, length: I64) -> tuple[I64, I64]:
            shard, place = locate(document, start, length)
            return number[shard], np.where(known[shard], place, 0)

        self._known = known
        self._locate = locate
        self._gather = Gatherer(columns, in_columns, dtype=LOSS, pad_id=0, eos_id=1, longest_fill=longest, read=read)

    @classmethod
    def of(cls, corpus: Corpus, longest: int) -> LossGatherer:
        """Return what copies the loss of the documents of a corpus."""
        columns, counts = [], []
        for store in corpus.stores:
            columns.append(store.loss)
            counts.append(len(store.shards))
        return cls(columns, counts, Locator(corpus.shards, corpus.locate), longest=longest)

    def __call__(self, segments: Segments) -> npt.NDArray[np.uint8]:
        inserted = np.flatnonzero(segments.document == INSERTED_EOS)
        if len(inserted):
            document = segments.document.copy()
            # An inserted EOS trains behind text. Behind a piece of a store with a loss nothing says that it does.
            document[inserted] = PADDING  # which does not train
            document[self._behind_text(segments, inserted)] = INSERTED_EOS
            segments = Segments(document, segments.start, segments.length, segments.repeated, segments.offsets)
        return self._gather(segments)

    def _behind_text(self, segments: Segments, inserted: I64) -> I64:
        """Return the inserted EOS that follow a piece of a store without the column in their row."""
        # The first token of a row or after padding has nothing before it that could predict it.
        inserted = inserted[~np.isin(inserted, segments.offsets[:-1])]
        inserted = inserted[segments.document[inserted - 1] >= 0]
        before = inserted - 1
        shard, _ = self._locate(segments.document[before], segments.start[before], segments.length[before])
        behind_text: I64 = inserted[~self._known[shard]]
        return behind_text


def copier(arrays: Sequence[npt.NDArray[Any]], dtype: np.dtype[Any]) -> Copier | CopierInTurn:
    """Return a function that copies slices of arrays, held all together, or in turn if they are too many."""
    return CopierInTurn(arrays, dtype) if isinstance(arrays, OnDemand) else Copier(arrays, dtype)


class CopierInTurn:
    """As `Copier`, with one array open at a time; several that are read by ranges are read at the same time."""

    def __init__(self, arrays: Sequence[npt.NDArray[Any]], dtype: np.dtype[Any]) -> None:
        self._arrays = arrays
        self._dtype = dtype

    def __call__(self, array: I64, start: I64, length: I64) -> npt.NDArray[Any]:
        # Array by array, so that every array is opened once; slice by slice it would be opened and closed repeatedly.
        order = np.argsort(array, kind="stable")
        cuts = np.flatnonzero(np.diff(array[order])) + 1
        groups = [(int(array[here[0]]), start[here], length[here]) for here in np.split(order, cuts) if len(here)]
        if len(groups) > 1 and isinstance(self._arrays[groups[0][0]], RangedArray):
            with ThreadPoolExecutor(min(len(groups), REQUESTS)) as pool:
                parts = list(pool.map(self._read, *zip(*groups, strict=True)))
        else:
            parts = [self._read(*group) for group in groups]
        if len(parts) < 2:
            return parts[0] if parts else np.empty(0, self._dtype)
        # What was read lies in the order of arrays; one more copy puts it into the order asked for.
        place = np.empty(len(order), np.int64)
        place[order] = offsets_of(length[order])[:-1]
        return Copier([np.concatenate(parts)], self._dtype)(np.zeros(len(place), np.int64), place, length)

    def _read(self, number: int, start: I64, length: I64) -> npt.NDArray[Any]:
        one: Any = self._arrays[number]
        if isinstance(one, RangedArray):
            return one.slices(start, length)
        return Copier([one], self._dtype)(np.zeros(len(start), np.int64), start, length)


class Copier:
    """Copies slices of 1-D arrays of one type, in any order, into one contiguous buffer.

    >>> copy = Copier([np.array([1, 2, 3]), np.array([4, 5])], np.dtype(np.int64))
    >>> copy(np.array([1, 0]), np.array([0, 1]), np.array([2, 2]))
    array([4, 5, 2, 3])
    """

    def __init__(self, arrays: Sequence[npt.NDArray[Any]], dtype: np.dtype[Any]) -> None:
        self._arrays = arrays
        self._dtype = dtype
        self._buffers: list[pa.Buffer] = []
        self._bytes = [array.view(np.uint8).data for array in arrays]
        first = []
        for raw in self._bytes:
            first.append(len(self._buffers))
            # A slice begins in the window of its first byte, and since windows are twice as long as their distance, it
            # ends there too, if it has no more than `_WINDOW` bytes, as every slice of a row has.
            for begin in range(0, max(1, len(raw)), _WINDOW):
                self._buffers.append(pa.py_buffer(raw[begin : begin + 2 * _WINDOW - 1]))
        self._first_buffer = np.array(first, np.int64)
        self._sizes = np.array(list(map(len, arrays)), np.int64)

    def __call__(self, array: I64, start: I64, length: I64) -> npt.NDArray[Any]:
        """Join items ``start:start + length`` of the array of each number.

        Raises:
            DataError: a slice reaches outside its array.
        """
        size = self._dtype.itemsize
        begin = start * size
        if len(array) <= _FEW:  # Python's slices read nothing outside either
            places = zip(array.tolist(), begin.tolist(), (begin + length * size).tolist(), strict=True)
            return np.frombuffer(b"".join([self._bytes[number][a:b] for number, a, b in places]), self._dtype)
        total = int(length.sum())
        if not total:
            return np.empty(0, self._dtype)
        # Arrow reads whatever an offset points to: what reaches outside would be other data, or kill the process.
        if min(int(start.min()), int(length.min())) < 0 or (start + length > self._sizes.take(array)).any():
            what, remedy = "a segment lies outside the tokens of every shard", "run packtool verify on what is read"
            raise DataError("bad-segments", what, remedy=remedy)
        # The layout of Arrow's binary views: length, then prefix, buffer and offset; or, up to 12 bytes, the data.
        window = begin // _WINDOW
        views = np.empty((len(array), 4), np.int32)
        views[:, 0] = length * size
        views[:, 1] = 0  # the prefix serves comparisons only
        views[:, 2] = self._first_buffer[array] + window
        views[:, 3] = begin - window * _WINDOW
        short = np.flatnonzero(length * size <= _INLINE)
        if len(short):
            views[short, 1:] = self._inline(array[short], start[short], length[short])
        slices = pa.Array.from_buffers(
            pa.binary_view(), len(views), [None, pa.py_buffer(views), *self._buffers], null_count=0
        )
        # The cast is the copy: buffer 2 of a binary array is the data of all slices, one after the other.
        data = slices.cast(pa.large_binary()).buffers()[2]
        return np.frombuffer(data, self._dtype, total)

    def _inline(self, array: I64, start: I64, length: I64) -> npt.NDArray[np.int32]:
        """Copy the data of slices of at most `_INLINE` bytes, padded with zeros to that size."""
        # `_INLINE` bytes are copied for every slice, within the array, and zeros are written over what is too much.
        column = np.arange(_INLINE // self._dtype.itemsize)
        at = np.minimum(start[:, None] + column, self._sizes[array, None] - 1)
        out = np.empty(at.shape, self._dtype)
        for number in np.flatnonzero(np.bincount(array)).tolist():
            mine = np.flatnonzero(array == number)
            out[mine] = self._arrays[number][at[mine]]
        out[column >= length[:, None]] = 0
        return out.view(np.int32)


class Locator:
    """Finds the shards of places in the stream of all of them: a table lookup, several times as fast as a search.

    Args:
        shards: in their order.
        begin_of: maps documents to the places of their first tokens in the stream.

    >>> find = Locator([np.zeros(3), np.zeros(0), np.zeros(7)], lambda documents: documents * 2)
    >>> find(np.array([1, 0, 2]), np.array([0, 1, 1]), np.array([1, 1, 1]))
    (array([0, 0, 2]), array([2, 1, 2]))
    """

    def __init__(self, shards: Sequence[npt.NDArray[Any]], begin_of: Callable[[I64], I64]) -> None:
        self._begin_of = begin_of
        self._bases = offsets_of(np.array(sizes_of(shards), np.int64))
        # The table has a few times as many entries as there are shards, so hardly any has a second shard begin inside.
        total, count = int(self._bases[-1]), len(shards)
        # An entry for every 2^shift places, at most some 4,096 or four times the shards.
        self._shift = max(0, total.bit_length() - max(12, count.bit_length() + 2))
        firsts = np.arange(0, total + 1, 1 << self._shift)
        self._table = np.searchsorted(self._bases[:-1], firsts, side="right") - 1
        self._most = int(np.diff(self._table, append=count - 1).max())

    def __call__(self, document: I64, start: I64, length: I64) -> tuple[I64, I64]:
        """Return the shards of segments, and the places of their first tokens there."""
        place = self._begin_of(document) + start
        shard: I64 = self._table[place >> self._shift]
        for _ in range(self._most):  # a shard may begin between the table's entries
            shard += place >= self._bases[shard + 1]
        return shard, place - self._bases[shard]


def coalesce(array: I64, start: I64, length: I64) -> Slices:
    """Merge consecutive slices into one.

    >>> one = np.array
    >>> coalesce(one([0, 0, 0, 1]), one([4, 6, 7, 8]), one([2, 3, 1, 1]))
    (array([0, 0, 1]), array([4, 7, 8]), array([5, 1, 1]))
    """
    joins = array[1:] == array[:-1]
    if np.count_nonzero(joins):
        joins &= start[1:] == start[:-1] + length[:-1]
    if not np.count_nonzero(joins):
        return array, start, length
    first = np.flatnonzero(np.append(True, ~joins))
    return array[first], start[first], np.add.reduceat(length, first)
