"""List what to export: a token store's documents, or a packed dataset's rows, in the order they are read.

That is shard by shard, or for a dataset with batches batch by batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from packtool.errors import UsageError
from packtool.exchange.model import Block, Contents, Part, groups
from packtool.formats import manifest as manifests
from packtool.formats.on_demand import joined
from packtool.formats.packed import PackedBucket, PackedDataset
from packtool.formats.schema import PackedManifest, StoreManifest
from packtool.formats.token_store import Corpus, TokenStore
from packtool.places.place import MappedFile, Place
from packtool.places.typed import Typed
from packtool.planning.plan import BATCH, I64, Segments, offsets_of
from packtool.writing.stored_tokens import open_packed

BLOCK_TOKENS = 1 << 22
"""Tokens that are held at a time; more where one document is longer."""

PART_TOKENS = 1 << 26
"""Tokens in a part of a dataset with batches."""


def contents_of(
    places: Sequence[Place], documents: Sequence[I64] | None = None, stores: Typed | Sequence[Typed] = ()
) -> Contents:
    """Open the contents to export.

    Args:
        places: of token stores, or of one packed dataset.
        documents: of each store, to take these of it, in this order; None for all of them.
        stores: that a dataset without tokens was packed from; none for where its manifest says.

    Raises:
        UsageError: neither token stores nor a packed dataset, or stores of different tokenizers.
        DataError: missing, unfinished or damaged.
    """
    for place in places:
        manifest = manifests.read(place)
        if isinstance(manifest, PackedManifest) and len(places) == 1:
            return _rows(open_packed(place, stores))
        if not isinstance(manifest, StoreManifest):
            wanted = "a token store or a packed dataset is needed"
            if len(places) > 1:
                wanted = "several token stores are exported together"
            what = f"{manifests.describe(manifest)}, where {wanted}"
            remedy = "give what packtool tokenize, pack or shuffle wrote"
            raise UsageError("not-exportable", what, remedy=remedy, where=str(place))
    return _documents(_Stored(Corpus(places).stores), documents)


class _Stored:
    """The documents of token stores, one store after the other, numbered through.

    Attributes:
        shards, offsets: of all stores.
        first_documents: the first document of each shard, and one after the last.
    """

    def __init__(self, stores: Sequence[TokenStore]) -> None:
        self.stores = stores
        self.shards = joined([store.shards for store in stores])
        self.offsets = joined([store.offsets for store in stores])
        self.firsts = offsets_of(np.array([store.documents for store in stores], np.int64))
        begins = [store.first_documents[:-1] + first for store, first in zip(stores, self.firsts, strict=False)]
        self.first_documents = np.append(np.concatenate(begins), self.firsts[-1])
        self._shards_before = offsets_of(np.array([len(store.shards) for store in stores], np.int64))

    @property
    def has_loss(self) -> bool:
        """Whether any store says which tokens train; all tokens of the others do."""
        return any(store.loss is not None for store in self.stores)

    def lengths(self) -> I64:
        """Return the length of each document."""
        return np.concatenate([store.lengths() for store in self.stores]).astype(np.int64)

    def trained(self, chosen: Sequence[I64] | None) -> int:
        """Count the tokens that train, of all documents or of those chosen of each store."""
        if chosen is None:
            return sum(store.trained() for store in self.stores)
        return sum(store.trained(documents) for store, documents in zip(self.stores, chosen, strict=True))

    def loss(self, shard: int, first: int, last: int) -> npt.NDArray[np.uint8]:
        """Return whether each of some tokens of a shard trains, 1 or 0."""
        number = int(np.searchsorted(self._shards_before, shard, side="right")) - 1
        masks = self.stores[number].loss
        if masks is None:
            return np.ones(last - first, np.uint8)
        found: npt.NDArray[np.uint8] = masks[shard - int(self._shards_before[number])][first:last]
        return found

    def files(self) -> Iterator[MappedFile]:
        """Yield every file that the documents are read from."""
        for store in self.stores:
            yield from store.files()


def _documents(stored: _Stored, chosen: Sequence[I64] | None) -> Contents:
    """Export all documents, a part for each shard, or some in the order given, a part for each `PART_TOKENS`."""
    numbers: I64 | None = None
    if chosen is None:
        sizes = [(len(offsets) - 1, len(tokens)) for offsets, tokens in zip(stored.offsets, stored.shards, strict=True)]
    else:
        numbers = np.concatenate([mine + first for mine, first in zip(chosen, stored.firsts, strict=False)])
        every = stored.lengths()[numbers]
        ends = np.cumsum(every)
        cuts = np.unique(np.searchsorted(ends, np.arange(PART_TOKENS, ends[-1] + PART_TOKENS, PART_TOKENS))).tolist()
        cuts = [0, *(cut for cut in cuts if 0 < cut < len(numbers)), len(numbers)]
        sizes = [(last - first, int(every[first:last].sum())) for first, last in pairwise(cuts)]

    def lengths(part: Part) -> I64:
        if numbers is None:
            return np.diff(stored.offsets[part.number]).astype(np.int64)
        return every[part.first_sequence : part.first_sequence + part.sequences]

    def blocks(part: Part) -> Iterator[Block]:
        documents = np.arange(part.first_sequence, part.first_sequence + part.sequences)
        if numbers is not None:
            documents = numbers[documents]
        sizes = lengths(part)
        for first, last in groups(offsets_of(sizes), BLOCK_TOKENS):
            stretches = list(_stretches(stored, documents[first:last]))
            tokens = _concatenated([stored.shards[shard][a:b] for shard, a, b in stretches])
            loss = None
            if stored.has_loss:
                loss = _concatenated([stored.loss(*stretch) for stretch in stretches])
            yield Block(tokens, sizes[first:last], loss=loss)

    store = stored.stores[0]
    tokens = sum(size for _, size in sizes)
    return Contents(
        name=", ".join(store.place.name for store in stored.stores),
        kind="documents",
        dtype=store.dtype,
        vocab_size=store.manifest.tokenizer.vocab_size,
        eos_id=store.manifest.tokenizer.eos_id,
        row_lengths=[],
        parts=_parts(sizes),
        bounded=True,
        padding=0,
        repeated=0,
        batched=False,
        lengths=lengths,
        blocks=blocks,
        bounds=lambda part: iter([(lengths(part), None)]),
        files=stored.files,
        masked=tokens - stored.trained(chosen) if stored.has_loss else None,
    )


def _stretches(stored: _Stored, documents: I64) -> Iterator[tuple[int, int, int]]:
    """List shard, begin and end of the documents' tokens, with those that lie side by side merged."""
    shard = np.searchsorted(stored.first_documents, documents, side="right") - 1
    breaks = 1 + np.flatnonzero((np.diff(documents) != 1) | (np.diff(shard) != 0))
    for first, last in pairwise([0, *breaks.tolist(), len(documents)]):
        number = int(shard[first])
        offsets, begin = stored.offsets[number], int(documents[first] - stored.first_documents[number])
        yield number, int(offsets[begin]), int(offsets[begin + last - first])


@dataclass(frozen=True)
class _Run:
    """Consecutive rows of one bucket."""

    bucket: PackedBucket
    first: int
    last: int

    @property
    def rows(self) -> int:
        return self.last - self.first

    @property
    def tokens(self) -> int:
        return self.rows * self.bucket.sequence_length


def _rows(dataset: PackedDataset) -> Contents:
    table = dataset.batches()
    runs = _shards(dataset) if table is None else _batches(dataset, table)

    def blocks(part: Part) -> Iterator[Block]:
        return (_block(group) for group in _joined(_cut(runs[part.number])))

    def bounds(part: Part) -> Iterator[tuple[I64, Segments | None]]:
        return ((_lengths(group), _segments(group)) for group in _joined(_cut(runs[part.number])))

    def files() -> Iterator[MappedFile]:
        yield from dataset.files()
        entry = dataset.manifest.batches
        if entry is not None:
            yield MappedFile(dataset.place, entry, dataset.place.array(entry, BATCH))

    return Contents(
        name=dataset.place.name,
        kind="rows",
        dtype=dataset.dtype,
        vocab_size=dataset.manifest.tokenizer.vocab_size,
        eos_id=dataset.manifest.tokenizer.eos_id,
        row_lengths=sorted({bucket.sequence_length for bucket in dataset.buckets if bucket.rows}),
        parts=_parts([(sum(run.rows for run in part), sum(run.tokens for run in part)) for part in runs]),
        bounded=dataset.has_segments,
        padding=dataset.manifest.ledger.padding,
        repeated=dataset.manifest.ledger.repeated,
        batched=table is not None,
        lengths=lambda part: _lengths(runs[part.number]),
        blocks=blocks,
        bounds=bounds,
        files=files,
        multiple=dataset.manifest.multiple,
        masked=dataset.manifest.ledger.masked if isinstance(dataset.manifest.ledger.masked, int) else None,
    )


def _shards(dataset: PackedDataset) -> list[list[_Run]]:
    """Yield the rows as they are stored, one part for each shard."""
    return [
        [_Run(bucket, first, last)]
        for bucket in dataset.buckets
        for first, last in pairwise(bucket.first_rows.tolist())
    ]


def _batches(dataset: PackedDataset, table: npt.NDArray[Any]) -> list[list[_Run]]:
    """Yield the rows batch by batch, then those in none, one part for each `PART_TOKENS` or a little more."""
    buckets = {bucket.sequence_length: bucket for bucket in dataset.buckets}
    runs = [_Run(buckets[length], first, first + rows) for length, first, rows in table.tolist()]
    for length, bucket in buckets.items():
        mine = np.sort(table[table["bucket"] == length], order="first_row")
        begins = [0, *(mine["first_row"] + mine["rows"]).tolist()]
        ends = [*mine["first_row"].tolist(), bucket.rows]
        runs += [_Run(bucket, first, last) for first, last in zip(begins, ends, strict=True) if first < last]
    return list(_joined(runs, PART_TOKENS))


def _cut(runs: Iterable[_Run]) -> Iterator[_Run]:
    """Cut rows into runs of at most `BLOCK_TOKENS`, or of one row."""
    for run in runs:
        step = max(1, BLOCK_TOKENS // run.bucket.sequence_length)
        for first in range(run.first, run.last, step):
            yield _Run(run.bucket, first, min(first + step, run.last))


def _joined(runs: Iterable[_Run], tokens: int = BLOCK_TOKENS) -> Iterator[list[_Run]]:
    """Join consecutive runs up to this many tokens; a longer one stays alone."""
    group: list[_Run] = []
    held = 0
    for run in runs:
        if group and held + run.tokens > tokens:
            yield group
            group, held = [], 0
        group.append(run)
        held += run.tokens
    if group:
        yield group


def _block(runs: list[_Run]) -> Block:
    loss = None
    columns = [(run.bucket.loss, run) for run in runs]
    if masks := [loss.tokens(run.first, run.last).reshape(-1) for loss, run in columns if loss is not None]:
        loss = _concatenated(masks)
    return Block(
        tokens=_concatenated([run.bucket.tokens(run.first, run.last).reshape(-1) for run in runs]),
        lengths=_lengths(runs),
        segments=_segments(runs),
        loss=loss,
    )


def _segments(runs: list[_Run]) -> Segments | None:
    """Return the segments of rows; None where they are not known."""
    if not all(run.bucket.has_segments for run in runs):
        return None
    return Segments.concatenate([run.bucket.segments(run.first, run.last) for run in runs])


def _lengths(runs: Iterable[_Run]) -> I64:
    return np.concatenate([np.full(run.rows, run.bucket.sequence_length, np.int64) for run in runs])


def _concatenated(arrays: list[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """Join arrays; a single one is not copied."""
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


def _parts(sizes: list[tuple[int, int]]) -> tuple[Part, ...]:
    sequences = accumulate((size[0] for size in sizes), initial=0)
    tokens = accumulate((size[1] for size in sizes), initial=0)
    return tuple(
        Part(number, count, total, before, ahead)
        for number, ((count, total), before, ahead) in enumerate(zip(sizes, sequences, tokens, strict=False))
    )
