"""Gather the rows of datasets without tokens from the token stores they were planned from.

A batch is one gather. Where documents lie is looked up in the stores' mapped offsets, so a process holds nothing that
grows with the corpus. Segments and offsets are files that may be damaged: nothing is copied before they were held
against each other.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import urlsplit

import numpy as np
import numpy.typing as npt

from packtool.errors import DataError, UsageError
from packtool.places.cached import CachedPlace
from packtool.places.local import LocalPlace
from packtool.places.npy import Scattered
from packtool.places.place import MappedFile, Place
from packtool.places.store import StorePlace
from packtool.places.typed import Typed, is_remote, place_of, places_of
from packtool.plan import I64, Segments, offsets_of
from packtool.storage import manifest as manifests
from packtool.storage.names import LOSS, OFFSET
from packtool.storage.on_demand import OnDemand, joined, sizes_of, slice_reader
from packtool.storage.packed import PackedDataset
from packtool.storage.schema import PackedManifest
from packtool.storage.token_store import TokenStore

if TYPE_CHECKING:
    from packtool.writing.gather import LossGatherer

MakePlace: TypeAlias = Callable[[str], Place]
"""The place of a path or URL, with the reader's cache."""


def open_packed(place: Typed, stores: Typed | Sequence[Typed] = (), keep: int | None = None) -> PackedDataset:
    """Open a packed dataset so that its rows can be read, wherever their tokens are.

    Args:
        place: of the dataset.
        stores: that it was packed from, in order; none to look where its manifest says. Not looked at where it has
            tokens.
        keep: as of `PackedDataset`.

    Raises:
        DataError: as `PackedDataset`; a store is gone, or has changed.
    """
    dataset = PackedDataset(place, keep)
    if dataset.manifest.index_only:
        gather = StoredTokens(dataset.place, dataset.manifest, store_places(dataset, stores))
        for bucket in dataset.buckets:
            bucket.gather = gather
            if bucket.loss is not None:
                bucket.loss.gather = gather.loss
    return dataset


def store_places(
    dataset: PackedDataset, given: Typed | Sequence[Typed] = (), make: MakePlace = place_of
) -> list[Place]:
    """Find the stores of a dataset without tokens.

    Args:
        dataset: the dataset.
        given: where they lie; none for where the manifest says.
        make: the place of one that the manifest names.

    Raises:
        DataError: one is gone, or is another than was packed.
    """
    manifest = dataset.manifest
    places = places_of(given)
    if not places and isinstance(manifest.stores, list):
        places = [_from(dataset.place, name, make) for name in manifest.stores]
    if len(places) != len(manifest.inputs):
        what = f"was packed from {len(manifest.inputs)} stores, but {len(places)} are given"
        raise UsageError("other-stores", what, remedy="give all of them, in the same order", where=str(dataset.place))
    for number, (place, entry) in enumerate(zip(places, manifest.inputs, strict=True), 1):
        which = f"store {number} of {len(places)} of {dataset.place}"
        remedy = f"say where it lies now, with --store on the command line or stores=[…] in Python ({which})"
        if place.size(manifests.MANIFEST) is None:
            what = "the token store that the rows are gathered from is not there"
            raise DataError("store-missing", what, remedy=remedy, where=str(place))
        if manifests.input_entry(place) != entry:
            what = "not the token store that the rows were planned from, or changed since: its manifest is another"
            raise DataError("store-changed", what, remedy=remedy, where=str(place))
    return places


def relative_places(stores: Sequence[Place], output: Place) -> list[str]:
    """Return the paths of stores relative to the dataset that is written.

    Args:
        stores: local or in object stores.
        output: of the command.

    Raises:
        UsageError: the dataset goes to an object store, and a store stays on this machine.
    """
    return [_seen_from(str(output), store) for store in stores]


def _seen_from(target: str, store: Place) -> str:
    """Describe a store as seen from a dataset.

    >>> from packtool.places.store import StorePlace
    >>> _seen_from("/data/packed", LocalPlace("/data/tokens"))
    '../tokens'
    >>> _seen_from("s3://lab/runs/packed", StorePlace("s3://lab/tokens")), _seen_from("a", StorePlace("s3://lab/tokens"))
    ('../../tokens', 's3://lab/tokens')
    """
    if isinstance(store, LocalPlace):
        if is_remote(target):
            what = "a dataset without tokens in an object store needs its token stores in one, too"
            raise UsageError("unsupported-store", what, remedy="copy the store there first", where=str(store))
        return Path(os.path.relpath(store.path.resolve(), Path(target).resolve())).as_posix()
    mine, theirs = urlsplit(target), urlsplit(str(store))
    if (mine.scheme, mine.netloc) == (theirs.scheme, theirs.netloc):
        return posixpath.relpath(theirs.path, mine.path)
    return str(store)


def _from(dataset: Place, name: str, make: MakePlace) -> Place:
    """Open the store that a manifest names."""
    if is_remote(name):
        return _beside(dataset, make(name))
    if isinstance(dataset, LocalPlace):
        return LocalPlace(os.path.normpath(dataset.path.resolve() / name))
    url = urlsplit(str(dataset))
    path = posixpath.normpath(posixpath.join(url.path, name))
    return _beside(dataset, make(f"{url.scheme}://{url.netloc}{path}"))


def _beside(dataset: Place, place: Place) -> Place:
    """Read a place as the dataset is read, through its cache or by ranges, unless it has a cache of its own."""
    if isinstance(dataset, CachedPlace) and isinstance(place, StorePlace) and not isinstance(place, CachedPlace):
        return CachedPlace(place, dataset.cache, dataset.ranged)
    return place


class StoredTokens:
    """Gathers the tokens of segments from token stores.

    Args:
        dataset: whose segments they are.
        manifest: of the dataset.
        stores: that it was packed from, in order.

    Raises:
        DataError: a store is unfinished or damaged.
    """

    def __init__(self, dataset: Place, manifest: PackedManifest, stores: Sequence[Place]) -> None:
        # These need pyarrow, which rows with their tokens do without.
        from packtool.writing.gather import Gatherer, LossGatherer

        self._made = dataset, manifest, stores
        self.stores = [TokenStore(place) for place in stores]
        files = [(store, shard) for store in self.stores for shard in store.manifest.shards]
        shards = joined([store.shards for store in self.stores])
        offsets = joined([store.offsets for store in self.stores])
        self._longest = max(bucket.sequence_length for bucket in manifest.buckets)
        self._bounds = _bounds(offsets)
        self._tokens = np.array(sizes_of(shards), np.int64)
        self._first_documents = offsets_of(np.array([size - 1 for size in sizes_of(offsets)], np.int64))
        self._firsts = offsets_of(np.array([store.documents for store in self.stores], np.int64))
        self._packed = offsets_of(np.array(manifest.store_documents, np.int64))
        self._chosen: I64 | None = None
        if manifest.choice is not None and manifest.choice.documents is not None:
            self._chosen = dataset.array(manifest.choice.documents, OFFSET)
        self._gather = Gatherer(
            shards,
            self._locate,
            dtype=np.dtype(manifest.dtype),
            pad_id=manifest.pad_id,
            eos_id=manifest.tokenizer.eos_id,
            longest_fill=self._longest,
            read=slice_reader([(store.place, shard.tokens) for store, shard in files], np.dtype(manifest.dtype)),
        )
        self.loss: StoredLoss | None = None
        if manifest.has_loss:
            columns = [store.loss for store in self.stores]
            counts = [len(store.shards) for store in self.stores]
            read = slice_reader([(store.place, shard.loss) for store, shard in files if shard.loss], LOSS)
            gather = LossGatherer(columns, counts, self._locate, longest=self._longest, read=read)
            self.loss = StoredLoss(self, gather)

    def __reduce__(self) -> tuple[Any, ...]:
        return StoredTokens, self._made

    def __call__(self, segments: Segments) -> npt.NDArray[Any]:
        """Gather the tokens of all segments, in order, as one 1-D array.

        Raises:
            DataError: a segment lies outside its document.
        """
        return self.gathered(segments, self._gather)

    def gathered(self, segments: Segments, gather: Callable[[Segments], npt.NDArray[Any]]) -> npt.NDArray[Any]:
        """Gather the tokens of segments, none longer than a row."""
        if segments.length.max(initial=0) > self._longest:
            raise self._outside()
        return gather(segments)

    def files(self) -> Iterator[MappedFile]:
        """List the files of the stores."""
        for store in self.stores:
            yield from store.files()

    def release(self) -> None:
        """Release the memory that maps what was read."""
        for store in self.stores:
            store.release()

    def _locate(self, document: I64, start: I64, length: I64) -> tuple[I64, I64]:
        """Locate segments: the shards they lie in, and the places of their first tokens there."""
        if not len(document):
            return document, start
        if int(document.max()) >= self._packed[-1]:
            raise self._outside()
        number = document
        if self._chosen is not None:
            source = np.searchsorted(self._packed, document, side="right") - 1
            stored = np.asarray(self._chosen[document])
            number = stored + self._firsts[source]
            if ((stored < 0) | (number >= self._firsts[source + 1])).any():
                raise self._outside()
        shard = self._first_documents.searchsorted(number, side="right") - 1
        begin, end = self._bounds(shard, number - self._first_documents.take(shard))
        first, tokens = begin + start, self._tokens.take(shard)
        if not ((begin >= 0) & (first + length <= end) & (end <= tokens)).all():
            if ((begin < 0) | (begin >= end) | (end > tokens)).any():
                what = "its offsets do not divide its tokens into documents"
                raise DataError("bad-offsets", what, remedy="run packtool verify on it", where=self._names())
            raise self._outside()
        return shard, first

    def _outside(self) -> DataError:
        what = "a segment lies outside its document"
        return DataError("bad-segments", what, remedy="run packtool verify on it", where=str(self._made[0]))

    def _names(self) -> str:
        return ", ".join(str(store.place) for store in self.stores)


class StoredLoss:
    """Gathers which tokens of segments train.

    Args:
        tokens: of the same segments.
        gather: from the columns of the stores.
    """

    loss = None

    def __init__(self, tokens: StoredTokens, gather: LossGatherer) -> None:
        self._tokens = tokens
        self._gather = gather

    def __reduce__(self) -> tuple[Any, ...]:
        return attrgetter("loss"), (self._tokens,)

    def __call__(self, segments: Segments) -> npt.NDArray[Any]:
        """Gather the loss of all tokens of all segments, in order, as one 1-D array.

        Raises:
            DataError: a segment lies outside its document.
        """
        return self._tokens.gathered(segments, self._gather)

    def files(self) -> Iterator[MappedFile]:
        """List the files of the stores."""
        return self._tokens.files()

    def release(self) -> None:
        """Release the memory that maps what was read."""
        self._tokens.release()


def _bounds(offsets: Sequence[I64]) -> Callable[[I64, I64], tuple[I64, I64]]:
    """Return what says where documents, counted in their shards, begin and end there."""
    if isinstance(offsets, OnDemand):
        from packtool.writing.gather import CopierInTurn

        read_both = CopierInTurn(offsets, OFFSET)

        def in_turn(shard: I64, document: I64) -> tuple[I64, I64]:
            both = read_both(shard, document, np.full(len(shard), 2)).reshape(-1, 2)
            return both[:, 0], both[:, 1]

        return in_turn
    read = Scattered(offsets or [np.zeros(1, OFFSET)])  # there may be no shard
    return lambda shard, document: (read(shard, document), read(shard, document + 1))
