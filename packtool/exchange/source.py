"""What is exported: a token store's documents, or a packed dataset's rows, shard by shard."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate, pairwise
from pathlib import Path

import numpy as np

from packtool.errors import UsageError
from packtool.exchange.model import Block, Contents, Part
from packtool.storage import manifest as manifests
from packtool.storage.manifest import PackedManifest, StoreManifest
from packtool.storage.packed import PackedBucket, PackedDataset
from packtool.storage.token_store import TokenStore

BLOCK_TOKENS = 1 << 22
"""Tokens that are held at a time; more where one document is longer."""


def contents_of(path: Path) -> Contents:
    """Open what is to be exported.

    Raises:
        UsageError: neither a token store nor a packed dataset.
        DataError: missing, unfinished or damaged.
    """
    manifest = manifests.read(path)
    if isinstance(manifest, StoreManifest):
        return _documents(TokenStore(path))
    if isinstance(manifest, PackedManifest):
        return _rows(PackedDataset(path))
    raise UsageError(
        "not-exportable",
        f"{manifests.describe(manifest)}, where a token store or a packed dataset is needed",
        remedy="give what packtool tokenize, pack or shuffle wrote",
        where=str(path),
    )


def _documents(store: TokenStore) -> Contents:
    sizes = [(len(offsets) - 1, len(tokens)) for offsets, tokens in zip(store.offsets, store.shards, strict=True)]

    def blocks(part: Part) -> Iterator[Block]:
        tokens, offsets = store.shards[part.number], store.offsets[part.number]
        first = 0
        while first < part.sequences:
            last = int(np.searchsorted(offsets, offsets[first] + BLOCK_TOKENS, side="right")) - 1
            last = min(max(last, first + 1), part.sequences)
            near = np.asarray(offsets[first : last + 1], np.int64)
            yield Block(tokens[near[0] : near[-1]], np.diff(near))
            first = last

    return Contents(
        name=store.path.resolve().name,
        kind="documents",
        dtype=store.dtype,
        vocab_size=store.manifest.tokenizer.vocab_size,
        eos_id=store.manifest.tokenizer.eos_id,
        parts=_parts([(*size, 0) for size in sizes]),
        bounded=True,
        padding=0,
        repeated=0,
        batched=False,
        blocks=blocks,
        files=store.files,
    )


def _rows(dataset: PackedDataset) -> Contents:
    shards: list[tuple[PackedBucket, int, int]] = []
    for bucket in dataset.buckets:
        bounds = bucket.first_rows.tolist()
        shards += [(bucket, first, last) for first, last in pairwise(bounds)]
    sizes = [
        (last - first, (last - first) * bucket.sequence_length, bucket.sequence_length)
        for bucket, first, last in shards
    ]

    def blocks(part: Part) -> Iterator[Block]:
        bucket, begin, end = shards[part.number]
        step = max(1, BLOCK_TOKENS // bucket.sequence_length)
        for first in range(begin, end, step):
            last = min(first + step, end)
            segments = bucket.segments(first, last) if bucket.has_segments else None
            lengths = np.full(last - first, bucket.sequence_length, np.int64)
            yield Block(bucket.tokens(first, last).reshape(-1), lengths, segments)

    return Contents(
        name=dataset.path.resolve().name,
        kind="rows",
        dtype=dataset.dtype,
        vocab_size=dataset.manifest.tokenizer.vocab_size,
        eos_id=dataset.manifest.tokenizer.eos_id,
        parts=_parts(sizes),
        bounded=dataset.has_segments,
        padding=dataset.manifest.ledger.padding,
        repeated=dataset.manifest.ledger.repeated,
        batched=dataset.manifest.batches is not None,
        blocks=blocks,
        files=dataset.files,
    )


def _parts(sizes: list[tuple[int, int, int]]) -> tuple[Part, ...]:
    sequences = accumulate((size[0] for size in sizes), initial=0)
    tokens = accumulate((size[1] for size in sizes), initial=0)
    return tuple(
        Part(number, count, total, before, ahead, length)
        for number, ((count, total, length), before, ahead) in enumerate(zip(sizes, sequences, tokens, strict=False))
    )
