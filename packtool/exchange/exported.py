"""List what to export: a token store's documents, or a packed dataset's rows, in the order they are read.

That is shard by shard, or for a dataset with batches batch by batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from packtool.exchange.model import Contents, Part, SequenceBlock, groups
from packtool.formats import manifest as manifests
from packtool.formats.on_demand import joined_contents
from packtool.formats.packed import PackedBucket, PackedDataset
from packtool.formats.schema import PackedManifest
from packtool.formats.token_store import Corpus, TokenStore
from packtool.places.place import MappedFile, Place
from packtool.places.typed import Typed
from packtool.planning.plan import BATCH, I64, Segments, offsets_of
from packtool.rows.stored_tokens import open_packed

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
        stores: the stores that a dataset without tokens was packed from; empty for the places in its manifest.

    Raises:
        UsageError: stores of different tokenizers.
        DataError: missing, unfinished or damaged.
    """
    if isinstance(manifests.read(places[0]), PackedManifest):
        return _rows(open_packed(places[0], stores))
    return _documents(Corpus(places), documents)


class _Shards:
    """The shards of token stores, one store after the other.

    Attributes:
        offsets: of all shards.
        first_documents: the first document of each shard, and one after the last.
    """

    def __init__(self, stores: Sequence[TokenStore]) -> None:
        self._stores = stores
        self.offsets = joined_contents([store.offsets for store in stores])
        firsts = offsets_of(np.array([store.documents for store in stores], np.int64))
        starts, shards = [], []
        for number, store in enumerate(stores):
            starts.append(store.first_documents[:-1] + firsts[number])
            shards.append(len(store.shards))
        self.first_documents = np.append(np.concatenate(starts), firsts[-1])
        self._shards_before = offsets_of(np.array(shards, np.int64))

    def loss(self, shard: int, first: int, last: int) -> npt.NDArray[np.uint8]:
        """Return the loss of some tokens of a shard: 1 for tokens that train, 0 for others."""
        number = int(np.searchsorted(self._shards_before, shard, side="right")) - 1
        masks = self._stores[number].loss
        if masks is None:
            return np.ones(last - first, np.uint8)
        found: npt.NDArray[np.uint8] = masks[shard - int(self._shards_before[number])][first:last]
        return found


def _documents(corpus: Corpus, chosen: Sequence[I64] | None) -> Contents:
    """Export all documents, a part for each shard, or some in the order given, a part for each `PART_TOKENS`."""
    stored, every = _Shards(corpus.stores), np.empty(0, np.int64)
    if chosen is None:
        sizes = [(len(offsets) - 1, int(offsets[-1])) for offsets in stored.offsets]
    else:
        corpus.choose(chosen)
        every = corpus.lengths().astype(np.int64)
        sizes = _sizes_of_parts(every)

    def lengths(part: Part) -> I64:
        if chosen is None:
            return np.diff(stored.offsets[part.number]).astype(np.int64)
        return every[part.first_sequence : part.first_sequence + part.sequences]

    def blocks(part: Part) -> Iterator[SequenceBlock]:
        documents = corpus.stored(np.arange(part.first_sequence, part.first_sequence + part.sequences))
        sizes = lengths(part)
        for first, last in groups(offsets_of(sizes), BLOCK_TOKENS):
            stretches = list(_stretches(stored, documents[first:last]))
            tokens = _concatenated([corpus.shards[shard][a:b] for shard, a, b in stretches])
            loss = None
            if corpus.has_loss:
                loss = _concatenated([stored.loss(*stretch) for stretch in stretches])
            yield SequenceBlock(tokens, sizes[first:last], loss=loss)

    parts = _parts(sizes)
    masked = None
    if corpus.has_loss:
        masked = sum(part.tokens for part in parts) - sum(corpus.trained())
    return Contents(
        name=", ".join(store.place.name for store in corpus.stores),
        kind="documents",
        dtype=corpus.dtype,
        vocab_size=corpus.tokenizer.vocab_size,
        eos_id=corpus.tokenizer.eos_id,
        row_lengths=[],
        parts=parts,
        bounded=True,
        padding=0,
        repeated=0,
        batched=False,
        lengths=lengths,
        blocks=blocks,
        bounds=lambda part: iter([(lengths(part), None)]),
        files=corpus.files,
        multiple=1,
        masked=masked,
        columns=list(dict.fromkeys(name for store in corpus.stores for name in store.kept_fields)),
    )


def _sizes_of_parts(lengths: I64) -> list[tuple[int, int]]:
    """Divide documents into parts of `PART_TOKENS` or a little less; return (documents, tokens) of every part."""
    ends = offsets_of(lengths)
    total = int(ends[-1])
    # A part ends with the last document that begins before a multiple of `PART_TOKENS`.
    cuts = np.searchsorted(ends[1:], np.arange(PART_TOKENS, total + 1, PART_TOKENS))
    cuts = np.unique([0, *cuts.tolist(), len(lengths)])
    tokens = np.diff(ends[cuts])
    return list(zip(np.diff(cuts).tolist(), tokens.tolist(), strict=True))


def _stretches(stored: _Shards, documents: I64) -> Iterator[tuple[int, int, int]]:
    """Yield shard, begin and end of the documents' tokens; documents that lie side by side are merged."""
    shard = np.searchsorted(stored.first_documents, documents, side="right") - 1
    breaks = 1 + np.flatnonzero((np.diff(documents) != 1) | (np.diff(shard) != 0))
    for first, last in pairwise([0, *breaks.tolist(), len(documents)]):
        number = int(shard[first])
        offsets, start = stored.offsets[number], int(documents[first] - stored.first_documents[number])
        yield number, int(offsets[start]), int(offsets[start + last - first])


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
    runs = list(_shards(dataset)) if table is None else _batches(dataset, table)
    sizes = []
    for part in runs:
        sizes.append((sum(run.rows for run in part), sum(run.tokens for run in part)))
    masked = dataset.manifest.ledger.masked

    def blocks(part: Part) -> Iterator[SequenceBlock]:
        return map(_block, _grouped(_cut(runs[part.number])))

    def bounds(part: Part) -> Iterator[tuple[I64, Segments | None]]:
        for group in _grouped(_cut(runs[part.number])):
            yield _lengths(group), _segments(group)

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
        parts=_parts(sizes),
        bounded=dataset.has_segments,
        padding=dataset.manifest.ledger.padding,
        repeated=dataset.manifest.ledger.repeated,
        batched=table is not None,
        lengths=lambda part: _lengths(runs[part.number]),
        blocks=blocks,
        bounds=bounds,
        files=files,
        multiple=dataset.manifest.multiple,
        masked=masked if isinstance(masked, int) else None,
        columns=dataset.columns.names,
    )


def _shards(dataset: PackedDataset) -> Iterator[list[_Run]]:
    """Yield the rows as they are stored, one part for each shard."""
    for bucket in dataset.buckets:
        for first, last in pairwise(bucket.shards.first_rows.tolist()):
            yield [_Run(bucket, first, last)]


def _batches(dataset: PackedDataset, table: npt.NDArray[Any]) -> list[list[_Run]]:
    """List the rows batch by batch, then the rows in no batch, in parts of `PART_TOKENS` or a little more."""
    buckets = {bucket.sequence_length: bucket for bucket in dataset.buckets}
    runs = []
    for length, first, rows in table.tolist():
        runs.append(_Run(buckets[length], first, first + rows))
    for length, bucket in buckets.items():
        mine = np.sort(table[table["bucket"] == length], order="first_row")
        starts = [0, *(mine["first_row"] + mine["rows"]).tolist()]
        ends = [*mine["first_row"].tolist(), bucket.rows]
        for first, last in zip(starts, ends, strict=True):  # between two batches, or before and after all
            if first < last:
                runs.append(_Run(bucket, first, last))
    return list(_grouped(runs, PART_TOKENS))


def _cut(runs: Iterable[_Run]) -> Iterator[_Run]:
    """Cut rows into runs of at most `BLOCK_TOKENS`, or of one row."""
    for run in runs:
        step = max(1, BLOCK_TOKENS // run.bucket.sequence_length)
        for first in range(run.first, run.last, step):
            yield _Run(run.bucket, first, min(first + step, run.last))


def _grouped(runs: Iterable[_Run], tokens: int = BLOCK_TOKENS) -> Iterator[list[_Run]]:
    """Join consecutive runs up to this many tokens; a longer one stays alone."""
    every = list(runs)
    offsets = offsets_of(np.array([run.tokens for run in every], np.int64))
    for first, last in groups(offsets, tokens):
        yield every[first:last]


def _block(runs: list[_Run]) -> SequenceBlock:
    tokens, masks = [], []
    for run in runs:
        tokens.append(run.bucket.tokens.between(run.first, run.last).reshape(-1))
        if run.bucket.loss is not None:
            masks.append(run.bucket.loss.between(run.first, run.last).reshape(-1))
    return SequenceBlock(
        tokens=_concatenated(tokens),
        lengths=_lengths(runs),
        segments=_segments(runs),
        loss=_concatenated(masks) if masks else None,
    )


def _segments(runs: list[_Run]) -> Segments | None:
    """Return the segments of rows; None where they are not known."""
    if not all(run.bucket.segments.exist for run in runs):
        return None
    return Segments.concatenate([run.bucket.segments.between(run.first, run.last) for run in runs])


def _lengths(runs: Iterable[_Run]) -> I64:
    return np.concatenate([np.full(run.rows, run.bucket.sequence_length, np.int64) for run in runs])


def _concatenated(arrays: list[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """Join arrays; a single one is not copied."""
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


def _parts(sizes: Iterable[tuple[int, int]]) -> tuple[Part, ...]:
    """Return numbered parts with these sequences and tokens, and with the sequences and tokens before them."""
    parts = []
    sequences = tokens = 0
    for number, (count, total) in enumerate(sizes):
        parts.append(Part(number, count, total, sequences, tokens))
        sequences, tokens = sequences + count, tokens + total
    return tuple(parts)
