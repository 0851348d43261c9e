"""How evenly batches hold the stores that were packed: counted from the segment tables of rows that are written."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from packtool.metrics import BatchMix, SourceMixing
from packtool.report.compared import MIXING_BATCH
from packtool.storage.manifest import Bucket, Shuffle
from packtool.storage.packed import PackedBucket
from packtool.writing.layout import BATCH_TOKENS


def source_mix(
    directory: Path,
    buckets: Sequence[Bucket],
    dtype: np.dtype[Any],
    store_documents: Sequence[int],
    shuffle: Shuffle | None,
) -> list[BatchMix]:
    """Each store's share of batches, for each row length; nothing where there is one store, or no segment table.

    Args:
        directory: that holds the buckets; its manifest may be missing yet.
        buckets: as the manifest will have them.
        dtype: of the tokens.
        store_documents: documents packed of each store.
        shuffle: the order of the rows.
    """
    if len(store_documents) < 2:
        return []
    mixes = []
    tokens = batch_tokens([bucket.sequence_length for bucket in buckets], shuffle, None)
    for each in buckets:
        rows = PackedBucket(directory, each, dtype, None)
        if not rows.has_segments:
            return []
        mixing = SourceMixing(store_documents, rows.sequence_length, max(1, tokens // rows.sequence_length))
        step = rows_at_once(mixing.batch_size, rows.sequence_length)
        for first in range(0, rows.rows, step):
            mixing.add(rows.segments(first, min(first + step, rows.rows)))
        rows.release()
        mixes.append(mixing.result())
    return mixes


def batch_tokens(sequence_lengths: Sequence[int], shuffle: Shuffle | None, batch_size: int | None) -> int:
    """Tokens of the batches in which mixing is measured: as asked for, else as the shuffle made them.

    Args:
        batch_size: rows of the longest in a batch, as asked for, or None.
    """
    if batch_size is None and shuffle is not None:
        if shuffle.batch_tokens is not None:
            return shuffle.batch_tokens
        batch_size = shuffle.batch_size
    return (batch_size or MIXING_BATCH) * max(sequence_lengths)


def rows_at_once(batch_size: int, sequence_length: int) -> int:
    """How many rows are counted at once: whole batches."""
    return max(1, BATCH_TOKENS // (sequence_length * batch_size)) * batch_size
