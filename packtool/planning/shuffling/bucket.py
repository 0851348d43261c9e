"""The bucket shuffle: every batch from one bucket and with the same number of tokens, batches in random order.

Rows are permuted within their buckets as by the atom shuffle, then cut to batches; the batches of all buckets are
permuted together.
Paper: Bucket Pre-training is All You Need (section 4.2, table 2: batches of 24, 12, 6 and 3 rows of 2048 to 16384).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from packtool.errors import UsageError
from packtool.planning.plan import BATCH
from packtool.planning.shuffling.permutation import Purpose, permutation


def require_whole_rows(lengths: Sequence[int], batch_tokens: int) -> None:
    """Raise a UsageError unless the tokens of a batch are a multiple of every sequence length."""
    for length in lengths:
        if batch_tokens % length or not batch_tokens:
            what = f"{batch_tokens} tokens is not a whole number of rows of {length}"
            remedy = f"give a multiple of {int(np.lcm.reduce(lengths))}"
            raise UsageError("bad-batch-tokens", what, remedy=remedy, where="--batch-tokens")


def batches(
    buckets: Sequence[tuple[int, int]], batch_tokens: int, *, keep_rest: bool, seed: int, epoch: int
) -> npt.NDArray[Any]:
    """Cut all buckets to batches, in random order.

    Args:
        buckets: (sequence length, rows) of each bucket.
        batch_tokens: tokens in a batch, padding included; a multiple of every sequence length.
        keep_rest: rows of a bucket that do not fill a batch make a smaller one; else they are left out.

    Returns:
        An array of `BATCH`.

    Raises:
        UsageError: `batch_tokens` is not a multiple of every sequence length.

    >>> batches([(2, 5), (4, 2)], 4, keep_rest=True, seed=42, epoch=0).tolist()
    [(2, 0, 2), (4, 0, 1), (2, 4, 1), (4, 1, 1), (2, 2, 2)]
    """
    require_whole_rows([length for length, _ in buckets], batch_tokens)
    parts = [np.empty(0, BATCH)]
    for length, rows in buckets:
        size = batch_tokens // length
        first = np.arange(0, rows if keep_rest else rows - rows % size, size)
        part = np.empty(len(first), BATCH)
        part["bucket"] = length
        part["first_row"] = first
        part["rows"] = np.minimum(size, rows - first)
        parts.append(part)
    corpus = np.concatenate(parts)
    return corpus[permutation(len(corpus), seed=seed, epoch=epoch, purpose=Purpose.BATCH_ORDER)]
