"""Gather the rows of datasets without tokens from the token stores they were planned from.

A batch is one gather. Where documents lie is looked up in the stores' mapped offsets, so a process holds nothing that
grows with the corpus. Segments and offsets are files that may be damaged: they are compared before anything is copied.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import numpy as np
import numpy.typing as npt

from packtool.errors import DataError, UsageError
from packtool.formats import manifest as manifests
from packtool.formats.names import LOSS, OFFSET
from packtool.formats.on_demand import OnDemand, joined_contents, sizes_of, slice_reader
from packtool.formats.packed import PackedDataset
from packtool.formats.schema import PackedManifest
from packtool.formats.token_store import TokenStore
from packtool.formats.unchanged import Unchanged
from packtool.places.cached import CachedPlace
from packtool.places.local import LocalPlace
from packtool.places.npy import FileEntry, Scattered
from packtool.places.place import MappedFile, Place
from packtool.places.store import StorePlace
from packtool.places.typed import Typed, place_of, places_of
from packtool.places.url import is_remote
from packtool.planning.document_loss import DocumentLoss
from packtool.planning.plan import I64, Segments, offsets_of
from packtool.support.installing import needing
from packtool.support.sizes import plural

if TYPE_CHECKING:
    from packtool.rows.gather import LossGatherer


def open_packed(
    place: Typed, stores: Typed | Sequence[Typed] = (), keep: int | None = None, unchanged: Unchanged | None = None
) -> PackedDataset:
    """Open a packed dataset so that its rows can be read, wherever their tokens are.

    Args:
        stores: token stores that the dataset was packed from, in order; empty for the places in its manifest. Ignored
            for a dataset with tokens.
        keep, unchanged: as in `PackedDataset`.

    Raises:
        DataError: as `PackedDataset`; a store is gone, or has changed.
    """
    dataset = PackedDataset(place, keep, unchanged)
    if dataset.manifest.index_only:
        gather = StoredTokens(dataset.place, dataset.manifest, store_places(dataset, stores))
        dataset.gather_by(gather)
        dataset.document_loss = gather.document_loss()
    return dataset


def store_places(dataset: PackedDataset, given: Typed | Sequence[Typed] = ()) -> list[Place]:
    """Find the stores of a dataset without tokens.

    Args:
        given: places of the stores; empty for the places in the manifest, which must lie in the directory that holds
            the dataset: the author of a manifest must not choose which files of this machine or its object stores are
            read.

    Raises:
        DataError: a store is gone, or is not the one that was packed; the manifest names a store elsewhere.
        UsageError: the number of stores differs from the manifest's.
    """
    manifest = dataset.manifest
    places = places_of(given)
    if not places and isinstance(manifest.stores, list):
        places = [_place_of_store(name, dataset.place) for name in manifest.stores]
    if len(places) != len(manifest.inputs):
        what = f"was packed from {plural(len(manifest.inputs), 'store')}, but {len(places)} are given"
        raise UsageError("other-stores", what, remedy="give all of them, in the same order", where=str(dataset.place))
    _require_stores(dataset.place, manifest, places)
    return places


def _require_stores(dataset: Place, manifest: PackedManifest, places: Sequence[Place]) -> None:
    """Refuse stores that are gone, or others than a dataset was packed from."""
    for number, (place, entry) in enumerate(zip(places, manifest.inputs, strict=True), 1):
        which = f"store {number} of {len(places)} of {dataset}"
        remedy = f"say where it lies now, with `--store` on the command line or stores=[…] in Python ({which})"
        try:
            found = manifests.input_entry(place)
        except FileNotFoundError:
            what = "the token store that the rows are gathered from is not there"
            raise DataError("store-missing", what, remedy=remedy, where=str(place)) from None
        except OSError as error:  # no permission, or a damaged manifest that names a place which can't be
            what = f"the token store that the rows are gathered from can't be read ({error.strerror})"
            raise DataError("store-missing", what, remedy=remedy, where=str(place)) from None
        if found != entry:
            what = "not the token store that the rows were planned from, or changed since: its manifest is another"
            raise DataError("store-changed", what, remedy=remedy, where=str(place))


def _place_of_store(name: str, dataset: Place) -> Place:
    """Return the place of a store that a dataset's manifest names, read through the cache of the dataset if any."""
    if isinstance(dataset, LocalPlace):
        held = dataset.path.resolve()
        path = held if is_remote(name) else Path(os.path.normpath(held / name))
        if path != held and held.parent in path.parents and held.parent in Path(os.path.realpath(path)).parents:
            return LocalPlace(path)
    else:
        url = urlsplit(str(dataset))
        bucket, above = f"{url.scheme}://{url.netloc}", posixpath.dirname(url.path).rstrip("/")
        key = posixpath.normpath(name.removeprefix(bucket) if is_remote(name) else posixpath.join(url.path, name))
        if key.startswith(f"{above}/") and (not is_remote(name) or name.startswith(f"{bucket}/")):
            place = place_of(bucket + key)
            if isinstance(dataset, CachedPlace) and isinstance(place, StorePlace):
                return CachedPlace(place, dataset.cache, dataset.ranged)
            return place
    what = f"its manifest names a token store that is not in the directory that holds the dataset: {name}"
    remedy = "if you trust it, name the stores with `--store` on the command line or stores=[…] in Python"
    raise DataError("store-elsewhere", what, remedy=remedy, where=str(dataset))


def name_for(store: Place, dataset: str) -> str:
    """Name a store in the manifest of a dataset, by its path relative to the dataset if both lie in one place.

    Raises:
        UsageError: the dataset lies in an object store, but the token store on this machine; the name is not UTF-8.

    >>> from packtool.places.store import StorePlace
    >>> name_for(LocalPlace("/data/tokens"), "/data/packed")
    '../tokens'
    >>> name_for(StorePlace("s3://lab/tokens"), "s3://lab/runs/packed"), name_for(StorePlace("s3://lab/tokens"), "a")
    ('../../tokens', 's3://lab/tokens')
    """
    if isinstance(store, LocalPlace):
        if is_remote(dataset):
            what = "a dataset without tokens in an object store needs its token stores in one, too"
            raise UsageError("unsupported-store", what, remedy="copy the store there first", where=str(store))
        name = Path(os.path.relpath(store.path.resolve(), Path(dataset).resolve())).as_posix()
        try:
            name.encode()
        except UnicodeEncodeError:
            what = "the name of its directory is not UTF-8, so the manifest of a dataset without tokens can't hold it"
            remedy = "rename it, or leave --index-only out"
            raise UsageError("bad-name", what, remedy=remedy, where=str(store)) from None
        return name
    mine, theirs = urlsplit(dataset), urlsplit(str(store))
    if (mine.scheme, mine.netloc) == (theirs.scheme, theirs.netloc):
        return posixpath.relpath(theirs.path, mine.path)
    return str(store)


def names_for(stores: Sequence[Place], dataset: str) -> list[str]:
    """Name each store in the manifest of a dataset, as `name_for` does."""
    return [name_for(store, dataset) for store in stores]


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
        with needing("a dataset without tokens of its own"):
            from packtool.rows.gather import Gatherer, LossGatherer

        self._made = dataset, manifest, stores
        self.stores = list(map(TokenStore, stores))
        _require_stores(dataset, manifest, stores)  # once more: what was mapped is of the stores that were planned from
        tokens_at: list[tuple[Place, FileEntry]] = []
        loss_at: list[tuple[Place, FileEntry]] = []
        for store in self.stores:
            for shard in store.manifest.shards:
                tokens_at.append((store.place, shard.tokens))
                if shard.loss:
                    loss_at.append((store.place, shard.loss))
        shards = joined_contents([store.shards for store in self.stores])
        offsets = joined_contents([store.offsets for store in self.stores])
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
            read=slice_reader(tokens_at, np.dtype(manifest.dtype)),
        )
        self.loss: StoredLoss | None = None
        if manifest.has_loss:
            columns = [store.loss for store in self.stores]
            counts = [len(store.shards) for store in self.stores]
            read = slice_reader(loss_at, LOSS)
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
        if np.count_nonzero(segments.length > self._longest):
            raise self._outside()
        return gather(segments)

    def files(self) -> Iterator[MappedFile]:
        """List the files of the stores."""
        for store in self.stores:
            yield from store.files()

    def document_loss(self) -> DocumentLoss | None:
        """Return what tells which tokens of documents train; None where all of them do."""
        if self.loss is None:
            return None
        masked = list(map(attrgetter("masked"), self.stores))
        return DocumentLoss(self.loss, self._made[1].store_documents, masked)

    def release(self) -> None:
        """Release the memory that maps what was read."""
        for store in self.stores:
            store.release()

    def _locate(self, document: I64, start: I64, length: I64) -> tuple[I64, I64]:
        """Return the shards that segments lie in, and the places of their first tokens there."""
        if not len(document):
            return document, start
        if np.count_nonzero(document >= self._packed[-1]):
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
        inside = (begin >= 0) & (first + length <= end) & (end <= tokens)
        if np.count_nonzero(inside) < len(inside):
            if ((begin < 0) | (begin >= end) | (end > tokens)).any():
                what, where = "its offsets do not divide its tokens into documents", ", ".join(map(str, self._made[2]))
                raise DataError("bad-offsets", what, remedy="run packtool verify on it", where=where)
            raise self._outside()
        return shard, first

    def _outside(self) -> DataError:
        what = "a segment lies outside its document"
        return DataError("bad-segments", what, remedy="run packtool verify on it", where=str(self._made[0]))


class StoredLoss:
    """Gathers the loss of the tokens of segments, where `StoredTokens` gathers the tokens."""

    loss = None

    def __init__(self, tokens: StoredTokens, gather: LossGatherer) -> None:
        self._tokens = tokens
        self._gather = gather

    def __reduce__(self) -> tuple[Any, ...]:
        return attrgetter("loss"), (self._tokens,)

    def __call__(self, segments: Segments) -> npt.NDArray[Any]:
        """Gather the loss of all tokens of all segments, as `StoredTokens` does the tokens."""
        return self._tokens.gathered(segments, self._gather)

    def files(self) -> Iterator[MappedFile]:
        return self._tokens.files()

    def release(self) -> None:
        self._tokens.release()


def _bounds(offsets: Sequence[I64]) -> Callable[[I64, I64], tuple[I64, I64]]:
    """Return a function that looks up where documents, numbered within their shards, begin and end."""
    if isinstance(offsets, OnDemand):
        from packtool.rows.gather import CopierInTurn

        read_both = CopierInTurn(offsets, OFFSET)

        def in_turn(shard: I64, document: I64) -> tuple[I64, I64]:
            both = read_both(shard, document, np.full(len(shard), 2)).reshape(-1, 2)
            return both[:, 0], both[:, 1]

        return in_turn
    return Scattered(offsets or [np.zeros(1, OFFSET)])  # there may be no shard
