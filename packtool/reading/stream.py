"""One stream of the samples to train on: of a dataset, or of several datasets in a blend.

    sample n  ──Order──▶  source, item  ──Source──▶  address: source, epoch, row length, row  ──worker──▶  tokens

A sample is an item of a source: a row, or a batch of rows if the rows of a dataset have several lengths. The rows of a
sample depend on its number alone, not on ranks, workers or batch sizes. The process that trains turns numbers into
addresses, and a worker reads rows by their addresses: so a worker needs no order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from packtool.blending.blend import Blend, WrittenSource, names_blend
from packtool.errors import UsageError
from packtool.formats.manifest import a_file
from packtool.options.check import is_whole
from packtool.options.kinds import PLACE, shown
from packtool.places.typed import Typed, place_of, places_of
from packtool.planning.plan import I64, by_value
from packtool.reading.batch import Batch, check_options, make_batch
from packtool.reading.column_fields import BlendedColumns, Names, columns_in
from packtool.reading.epochs import Source
from packtool.reading.order import BlendOrder, OneSource, Order
from packtool.reading.raw_batch import RawBatch, joined_rows, of_no_rows
from packtool.reading.recipe import CACHE_BYTES, SHARDS, Fetch
from packtool.reading.sources import CacheOptions, open_sources
from packtool.support.sizes import plural

SOURCE, EPOCH, LENGTH, ROW = range(4)
"""Columns of an address: number of the source, epoch of the source, length of the row, and number of the row among the
rows of that length in that epoch."""
_CALL = 1 << 18  # tokens of a source to read in one call: with fewer, what a call costs besides reading would show
_AHEAD = 1 << 21  # tokens of all sources that are read at once, at most


class Stream:
    """The samples of a dataset, pass after pass; or of a blend, from the first to the last, which is one pass.

    A pass of a dataset is `epochs` of its epochs: every row comes once in each of them. A blend of one dataset with
    rows of several lengths weights these, not sources, and is read as that dataset, but for its name and batch size.

    It is pickled without open files, since `Source` leaves them out: a worker process opens an epoch when it reads it.

    Args:
        source: path or URL of a packed dataset; or a blend: a TOML file or a `packtool.Blend`, in which every source
            has its own epochs, shuffle, seed, repack and stores.
        epochs: number of epochs in a pass.
        shuffle: compute for each epoch the order that ``packtool shuffle --seed --epoch`` would write; else read every
            epoch in stored order.
        seed: of these orders; by default the seed that the dataset was packed or shuffled with.
        batch_tokens: tokens in a global batch; for rows of several lengths, by default, what the dataset was made for.
        drop_rest: for rows of several lengths: leave out rows that do not fill a batch.
        repack: pack the documents again for each epoch; only for a dataset that takes its tokens from token stores.
        stores: where these token stores lie, if not where the dataset says.
        cache, cache_bytes, fetch: how files at URLs are kept on this machine, as in `packtool.open`.
        options: of `packtool.reading.make_batch`. Batches of a blend have the field ``source`` by default, unless
            labels are ``same``.

    Raises:
        UsageError: options that make no sense, or that a blend does not take; sources that don't go together.
        DataError: a source is missing, unfinished or damaged.

    Attributes:
        blend: as it was written; None for a dataset.
        sources: opened, by name; None for a source whose path is left out of the blend, since a resumed run has read
            all of its rows. The source of a dataset has the name "".
        past_identities: `Source.identity` of the sources without a path, by name; `state.py` sets it when it loads one.
        order: which source each sample is from, and which item of that source.
        names: what the numbers in the field `source` of a batch stand for: the sources of a blend, or the token stores
            of a dataset.
        bucketed: whether rows have several lengths, so that samples are batches.
        options: of `packtool.reading.make_batch`.
        batch_size: samples in a global batch, and for messages which option says so.
        rows_ahead: rows to read at once, for several batches; 0 to read every batch when it is needed.
    """

    def __init__(
        self,
        source: Typed | Blend,
        *,
        epochs: int = 1,
        shuffle: bool = True,
        seed: int | None = None,
        batch_tokens: int | None = None,
        drop_rest: bool = False,
        repack: bool = False,
        stores: Typed | Sequence[Typed] = (),
        cache: str | Path | None = None,
        cache_bytes: str | int = CACHE_BYTES,
        fetch: Fetch = SHARDS,
        **options: Any,
    ) -> None:
        check_options(options, Stream, make_batch)
        if not is_whole(epochs) or epochs < 1:
            raise UsageError("bad-option", f"{epochs} is out of range", remedy="give 1 or more", where="epochs")
        caching = CacheOptions(cache, cache_bytes, fetch)
        self.blend = blend_of(source)
        if self.blend is None:
            assert not isinstance(source, Blend)
            stored = tuple(places_of(stores))
            alone = WrittenSource(str(source), source, repack=repack, shuffle=shuffle, seed=seed, stores=stored)
            self.sources = open_sources({"": alone}, caching, batch_tokens, drop_rest=drop_rest)
        else:
            _refuse_in_blend({"shuffle": shuffle, "seed": seed, "repack": repack, "stores": stores or ()})
            tokens = self.blend.batch_tokens if batch_tokens is None else batch_tokens
            self.sources = open_sources(self.blend.sources, caching, tokens, drop_rest=drop_rest, blend=self.blend)
        self.past_identities: dict[str, dict[str, int | str | bool | None]] = {}
        # At least one has a path, and all are alike in row length and tokenizer: `open_sources` sees to both.
        first = next(opened for opened in self.sources.values() if opened is not None)
        self.bucketed = first.bucketed
        if self.bucketed:
            # A dataset with several row lengths is the only source. In a blend, it has a weight for each row length in
            # place of one for each source. `Source` orders its batches by them; all else is as without a blend.
            self.sources = {"": first}
        self._opened = list(self.sources.values())
        self._length = first.lengths[-1]  # the longest: lengths ascend
        self.order: Order
        if self.blend is None or self.bucketed:
            self.order = OneSource(first, epochs)
            self.names = first.names
            self.options = {"fields": first.fields, **options}
        else:
            _refuse_in_blend({"epochs": epochs})  # not above: a blend that weights row lengths takes epochs
            self.order = BlendOrder.of(self.blend, self.sources)
            self.names = list(self.sources)
            fields = first.fields
            if options.get("labels") != "same":
                # Labels are ``same`` for the models of Transformers. Their losses have a parameter `source`, so
                # model(**batch) would fail on a field of that name.
                fields = (*fields, "source")
            self.options = {"fields": fields, **options}
        self.batch_size = _batch_size(self.blend, batch_tokens, self._length, bucketed=self.bucketed)
        self.rows_ahead = 0
        # Rows of several lengths can't be read in one call. Of a URL, every further row may be one more shard to fetch.
        if self.is_local and not self.bucketed:
            self.rows_ahead = min(len(self._opened) * _CALL, _AHEAD) // self._length
        self._columns_read: BlendedColumns | None = None
        self.batch(np.empty((0, 4), np.int64))  # so bad options are found here, rather than in a worker later
        for opened in self._opened:
            if opened is not None:
                opened.epoch(0).require(self.options)  # what the fields need, such as segments; all epochs have it

    def __len__(self) -> int:
        """Count the samples of the first pass."""
        _, after_last = self.order.bounds(0)
        return after_last

    def __repr__(self) -> str:
        if not isinstance(self.order, BlendOrder):
            return repr(self.source(0).epoch(0))
        what = f"{plural(len(self), 'row')} of {self._length} tokens, of {', '.join(self.names)}"
        return f"<packtool blend: {what}, {self.order.blend.name}>"

    @property
    def name(self) -> str:
        """Its name in messages: the name of the blend, or the place of the dataset."""
        if self.blend is None:
            return str(self.source(0).recipe.place)
        return self.blend.name

    @property
    def is_local(self) -> bool:
        """Whether all sources lie in directories of this machine."""
        return all(source.is_local for source in self._opened if source is not None)

    def source(self, number: int) -> Source:
        """Return a source by its number.

        Raises:
            UsageError: the source has no path.
        """
        source = self._opened[number]
        if source is None:
            assert isinstance(self.order, BlendOrder)
            raise self.order.pathless(list(self.sources)[number])
        return source

    def addresses(self, first: int, last: int) -> I64:
        """Return the addresses of the rows of samples ``first:last``: (rows, 4), `SOURCE`, `EPOCH`, `LENGTH`, `ROW`."""
        return self.located(np.arange(first, last))

    def located(self, samples: I64) -> I64:
        """Return the addresses of the rows of some samples, as `addresses` does, in the order of the samples."""
        sources, items = self.order.locate(samples)
        if self.bucketed:
            inside = self.source(0).addresses(items)  # (rows, 3): a batch has many rows; the only source is number 0
            out = np.zeros((len(inside), 4), np.int64)
            out[:, EPOCH:] = inside
            return out
        out = np.empty((len(samples), 4), np.int64)
        out[:, SOURCE] = sources
        for source, places in by_value(sources):  # each source once, with the places of its samples among these
            out[places, EPOCH:] = self.source(source).addresses(items[places])
        return out

    def rows_of(self, first: int, last: int) -> int:
        """Count the rows of the samples ``first:last``."""
        if not self.bucketed:
            return last - first
        return sum(self.source(0).rows_of(item) for item in range(first, last))

    def left_out(self, number: int) -> int:
        """Count the rows of a pass that are in no sample, for a dataset with rows of several lengths.

        Args:
            number: of the pass, from 0.
        """
        source = self.source(0)
        epochs, _ = source.epochs_of(np.array(self.order.bounds(number)))
        # The first sample after a pass is in the first epoch after the pass.
        first, after_last = epochs.tolist()
        return sum(map(source.left_out, range(first, after_last)))

    def read(self, addresses: I64, options: Mapping[str, Any] | None = None, *, length: int | None = None) -> RawBatch:
        """Read rows of one length, in the given order.

        Args:
            options: of the batch; by default the options of the stream.
            length: of the rows, for a batch that may have no rows; by default the longest.
        """
        if options is None:
            options = self.options
        if isinstance(self.order, BlendOrder):
            # In a blend `source` has the number of a row's source, set below; in a dataset, that of a token's store.
            options = {**options, "fields": [name for name in options["fields"] if name != "source"]}
        wanted = columns_in(options["fields"])
        if wanted:
            self._all_columns.require(options["fields"])
        if len(addresses):
            parts = ((part.places, self._read(part, wanted, options)) for part in _parts(addresses))
            raw = joined_rows(len(addresses), parts)
        else:
            if length is None:
                length = self._length
            raw = of_no_rows(length)
            raw = raw._replace(columns={name: self._all_columns.empty(name) for name in wanted})
        if not isinstance(self.order, BlendOrder):
            return raw
        return raw._replace(source=addresses[:, SOURCE].astype(np.int32))

    def _read(self, part: _Part, wanted: Sequence[str], options: Mapping[str, Any]) -> RawBatch:
        """Read the rows of one source and epoch.

        Args:
            wanted: names of columns to read. The numbers of their categories become those of the stream's `columns`.
        """
        raw = self.source(part.source).read(part.epoch, part.length, part.rows, options)
        if not wanted:
            return raw
        name = list(self.sources)[part.source]
        columns_of_source = raw.columns or {}
        assert raw.segments is not None  # `require` has refused datasets without
        count = len(raw.segments)  # a source that lacks a column gives a missing value for each of its segments
        columns = {}
        for column in wanted:
            columns[column] = self._all_columns.translated(column, name, columns_of_source.get(column), count)
        return raw._replace(columns=columns)

    @property
    def _all_columns(self) -> BlendedColumns:
        """The columns of all sources, read when they are first needed."""
        if self._columns_read is None:
            opened = {name: source for name, source in self.sources.items() if source is not None}
            self._columns_read = BlendedColumns({name: source.columns for name, source in opened.items()})
        return self._columns_read

    @property
    def columns(self) -> dict[str, Names]:
        """The kept columns of documents by name, with the lists of their categories; None for columns of numbers.

        In a blend a list has the categories of all sources. A column of numbers in one source and categories in another
        can't be in a batch.
        """
        return dict(self._all_columns.names)

    def batch(self, addresses: I64, length: int | None = None) -> Batch:
        """Build a training batch of rows of one length, in the given order; `length` as in `read`."""
        return self.read(addresses, length=length).batch(**self.options)

    def pairs(self, addresses: I64) -> I64:
        """Count the query-key pairs of attention within documents, for some rows of one length: (rows).

        Raises:
            UsageError: a source was written with ``--no-segments``.
        """
        costs = np.empty(len(addresses), np.int64)
        for part in _parts(addresses):
            costs[part.places] = self.source(part.source).pairs(part.epoch, part.length, part.rows)
        return costs


class _Part(NamedTuple):
    """The rows of one source and epoch in a batch, which are read by one call."""

    source: int
    epoch: int
    length: int
    places: I64  # places of these rows in the batch
    rows: I64  # their numbers among the rows of this length in this epoch


def _parts(addresses: I64) -> Iterator[_Part]:
    """Yield rows of one length in parts, by source and epoch; the rows of a part stay in their order."""
    if not len(addresses):
        return
    # The number of an epoch has less than 32 bits, so one number can stand for both.
    alike = (addresses[:, SOURCE] << 32) | addresses[:, EPOCH]
    length = int(addresses[0, LENGTH])
    for both, places in by_value(alike):
        yield _Part(both >> 32, both & 0xFFFFFFFF, length, places, addresses[places, ROW])


class BatchSize(NamedTuple):
    """Samples in a global batch."""

    samples: int | None  # number of samples; None if neither the caller nor the blend gives it
    origin: str = ""  # what a message says before the number, such as "batch_tokens make" before "8"


def _batch_size(blend: Blend | None, batch_tokens: int | None, length: int, *, bucketed: bool) -> BatchSize:
    """Return the samples in a global batch, from `batch_tokens` or from the blend."""
    if bucketed:
        _require_one_size(blend, batch_tokens)
        return BatchSize(1)  # a sample is a batch already
    given = BatchSize(None)
    if batch_tokens is not None:
        given = BatchSize(_rows_in(batch_tokens, length, "batch_tokens"), "batch_tokens make")
    if blend is None:
        return given
    written = BatchSize(blend.batch_size, f"{blend.name} says batch-size =")
    if blend.batch_tokens is not None:
        rows = _rows_in(blend.batch_tokens, length, f"{blend.name}: batch-tokens")
        if written.samples not in (None, rows):
            what = f"batch-size is {written.samples}, but batch-tokens make {plural(rows, 'row')}"
            raise UsageError("bad-option", what, remedy="leave one of the two out", where=blend.name)
        written = BatchSize(rows, f"the batch-tokens of {blend.name} make")
    if written.samples is None:
        return given
    if given.samples not in (None, written.samples):
        what = f"it makes {plural(given.samples, 'row')}, but {written.origin} {written.samples}"
        raise UsageError("bad-option", what, remedy="leave it out, or change the blend", where="batch_tokens")
    return written


def _require_one_size(blend: Blend | None, batch_tokens: int | None) -> None:
    """Refuse a blend that has a batch-size in rows, or batch-tokens other than `batch_tokens`.

    For a dataset with rows of several lengths: its batches have equally many tokens, not rows.
    """
    if blend is None:
        return
    if blend.batch_size is not None:
        what = "batch-size, but rows of several lengths are batched by tokens"
        raise UsageError("option-not-taken", what, remedy="give batch-tokens in its place", where=blend.name)
    if None not in (batch_tokens, blend.batch_tokens) and batch_tokens != blend.batch_tokens:
        what = f"{batch_tokens}, but {blend.name} says batch-tokens = {blend.batch_tokens}"
        raise UsageError("bad-option", what, remedy="leave it out, or change the blend", where="batch_tokens")


def _rows_in(batch_tokens: int, length: int, where: str) -> int:
    """Return the rows of a batch of this many tokens, which must be whole rows."""
    if batch_tokens < length or batch_tokens % length:
        what = f"{batch_tokens} is not a multiple of the {length} tokens of a row"
        raise UsageError("bad-option", what, remedy="give a multiple, or batch_size in rows", where=where)
    return batch_tokens // length


def blend_of(source: Typed | Blend, where: str = "source") -> Blend | None:
    """Return the blend that a source is, read from its file if need be; None for a dataset.

    Args:
        where: the name of the argument, for messages.

    Raises:
        UsageError: neither a path, a URL nor a blend.
        DataError: a file that is none.
    """
    if isinstance(source, Blend):
        return source
    try:
        PLACE.parse(source)
    except ValueError:
        what = f"{shown(source)} is neither a path, a URL nor a packtool.Blend"
        remedy = "give one packed dataset; packtool.Blend reads several together"
        raise UsageError("bad-option", what, remedy=remedy, where=where) from None
    if isinstance(source, str | Path) and names_blend(source):
        return Blend.read(source)
    if isinstance(source, str | Path) and Path(source).is_file():
        raise a_file(place_of(source))
    return None


_DEFAULTS = {"epochs": 1, "shuffle": True, "seed": None, "repack": False, "stores": ()}
"""The defaults of the options that a blend has in its own file: any other value contradicts it."""


def _refuse_in_blend(options: Mapping[str, Any]) -> None:
    """Refuse options that a blend has in its own file, for every source."""
    for name, value in options.items():
        if value != _DEFAULTS[name]:
            what, remedy = "a blend says this itself, of each source", "write it in the blend, or leave it out"
            raise UsageError("option-not-taken", what, remedy=remedy, where=name)
