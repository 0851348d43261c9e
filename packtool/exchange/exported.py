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
from packtool.formats.packed import PackedBucket, PackedDataset
from packtool.formats.schema import PackedManifest, StoreManifest
from packtool.formats.token_store import TokenStore
from packtool.places.place import MappedFile
from packtool.places.typed import Typed
from packtool.planning.plan import BATCH, I64, Segments, offsets_of
from packtool.writing.stored_tokens import open_packed

BLOCK_TOKENS = 1 << 22
"""Tokens that are held at a time; more where one document is longer."""

PART_TOKENS = 1 << 26
"""Tokens in a part of a dataset with batches."""


def contents_of(place: Typed, documents: I64 | None = None, stores: Typed | Sequence[Typed] = ()) -> Contents:
    """Open the contents to export.

    Args:
        place: of a token store or a packed dataset.
        documents: of a store, to take these of it, in this order; None for all of them.
        stores: that a dataset without tokens was packed from; none for where its manifest says.

    Raises:
        UsageError: neither a token store nor a packed dataset.
        DataError: missing, unfinished or damaged.
    """
    manifest = manifests.read(place)
    if isinstance(manifest, StoreManifest):
        return _documents(TokenStore(place), documents)
    if isinstance(manifest, PackedManifest):
        return _rows(open_packed(place, stores))
    raise UsageError(
        "not-exportable",
        f"{manifests.describe(manifest)}, where a token store or a packed dataset is needed",
        remedy="give what packtool tokenize, pack or shuffle wrote",
        where=str(place),
    )


def _documents(store: TokenStore, chosen: I64 | None) -> Contents:
    """Export all documents, a part for each shard, or some in the order given, a part for each `PART_TOKENS`."""
    if chosen is None:
        sizes = [(len(offsets) - 1, len(tokens)) for offsets, tokens in zip(store.offsets, store.shards, strict=True)]
        masked = store.tokens - store.trained()
    else:
        every = np.asarray(store.lengths(), np.int64)[chosen]
        ends = np.cumsum(every)
        cuts = np.unique(np.searchsorted(ends, np.arange(PART_TOKENS, ends[-1] + PART_TOKENS, PART_TOKENS))).tolist()
        cuts = [0, *(cut for cut in cuts if 0 < cut < len(chosen)), len(chosen)]
        sizes = [(last - first, int(every[first:last].sum())) for first, last in pairwise(cuts)]
        masked = int(ends[-1]) - store.trained(chosen)

    def lengths(part: Part) -> I64:
        if chosen is None:
            return np.diff(store.offsets[part.number]).astype(np.int64)
        return every[part.first_sequence : part.first_sequence + part.sequences]

    def blocks(part: Part) -> Iterator[Block]:
        documents = np.arange(part.first_sequence, part.first_sequence + part.sequences)
        if chosen is not None:
            documents = chosen[documents]
        sizes = lengths(part)
        for first, last in groups(offsets_of(sizes), BLOCK_TOKENS):
            stretches = list(_stretches(store, documents[first:last]))
            tokens = _concatenated([store.shards[shard][a:b] for shard, a, b in stretches])
            loss = None
            if store.loss is not None:
                loss = _concatenated([store.loss[shard][a:b] for shard, a, b in stretches])
            yield Block(tokens, sizes[first:last], loss=loss)

    return Contents(
        name=store.place.name,
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
        files=store.files,
        masked=None if store.loss is None else masked,
    )


def _stretches(store: TokenStore, documents: I64) -> Iterator[tuple[int, int, int]]:
    """List shard, begin and end of the documents' tokens, with those that lie side by side merged."""
    shard = np.searchsorted(store.first_documents, documents, side="right") - 1
    breaks = 1 + np.flatnonzero((np.diff(documents) != 1) | (np.diff(shard) != 0))
    for first, last in pairwise([0, *breaks.tolist(), len(documents)]):
        number = int(shard[first])
        offsets, begin = store.offsets[number], int(documents[first] - store.first_documents[number])
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
    segments = loss = None
    if all(run.bucket.has_segments for run in runs):
        segments = Segments.concatenate([run.bucket.segments(run.first, run.last) for run in runs])
    columns = [(run.bucket.loss, run) for run in runs]
    if masks := [loss.tokens(run.first, run.last).reshape(-1) for loss, run in columns if loss is not None]:
        loss = _concatenated(masks)
    return Block(
        tokens=_concatenated([run.bucket.tokens(run.first, run.last).reshape(-1) for run in runs]),
        lengths=_lengths(runs),
        segments=segments,
        loss=loss,
    )


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
