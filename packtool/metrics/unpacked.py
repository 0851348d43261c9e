"""Measure documents that are not packed: one a row, each padded to the longest of its batch.

The baseline that packing is measured against ("Bucket Pre-training is All You Need", section 1).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, lgamma

import numpy as np

from packtool.metrics.lengths import LengthCounts


@dataclass(frozen=True, slots=True)
class Unpacked:
    """What batches of documents in random order hold, on average over all orders.

    Attributes:
        batch_size: documents in a batch.
        mean_row: tokens in a row: the mean length of the longest document of a batch.
        padding_ratio: share of padding in all rows.
    """

    batch_size: int
    mean_row: float
    padding_ratio: float


def unpacked(counts: LengthCounts, batch_size: int) -> Unpacked | None:
    """Count documents padded to the longest of a random batch; None without documents.

    Of N documents, n of them no longer than x, a batch of B has none longer with probability C(n, B) / C(N, B).

    >>> unpacked(LengthCounts.of(np.array([2, 4, 6])), 2)
    Unpacked(batch_size=2, mean_row=5.333333333, padding_ratio=0.25)
    """
    documents = counts.documents
    if not documents:
        return None
    size = min(batch_size, documents)
    known = np.cumsum(counts.counts).tolist()
    whole = _log_choices(documents, size)
    at_most = np.array([exp(_log_choices(n, size) - whole) if n >= size else 0.0 for n in known])
    longest = np.diff(at_most, prepend=0.0)
    mean = round(float(longest @ counts.values), 9)
    return Unpacked(batch_size, mean, round(1 - counts.mean / mean, 9))


def _log_choices(n: int, size: int) -> float:
    """Compute the log of n (n − 1) … (n − size + 1)."""
    return lgamma(n + 1) - lgamma(n - size + 1)
