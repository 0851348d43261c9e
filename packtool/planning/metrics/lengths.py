"""The distribution of document lengths."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from packtool.planning.metrics.ratios import quantile, ratio
from packtool.planning.plan import I64, Ints, distinct

_DIRECT = 1 << 16  # lengths below it are counted by index, the few above it by sorting
_CHUNK = 1 << 18  # lengths counted at a time, few enough for the cache
_BINS_PER_OCTAVE = 4


@dataclass(frozen=True)
class LengthCounts:
    """How many documents have each length that occurs.

    >>> counts = LengthCounts.of(np.array([3, 5, 3, 9]))
    >>> counts.documents, counts.tokens, counts.quantile(0.5)
    (4, 20, 3)
    """

    values: I64  # distinct lengths, ascending
    counts: I64  # documents of each length

    @classmethod
    def of(cls, lengths: Ints) -> LengthCounts:
        """Count lengths of at least 0."""
        short = np.zeros(_DIRECT, np.int64)
        long: list[Ints] = []
        for first in range(0, len(lengths), _CHUNK):
            chunk = lengths[first : first + _CHUNK]
            over = chunk >= _DIRECT
            if over.any():
                long.append(chunk[over])
                chunk = chunk[~over]
            short += np.bincount(chunk, minlength=_DIRECT)
        values = np.flatnonzero(short)
        counts = short[values]
        if long:
            more, times = np.unique(np.concatenate(long).astype(np.int64), return_counts=True)
            values, counts = np.concatenate([values, more]), np.concatenate([counts, times])
        return cls(values, counts)

    @property
    def documents(self) -> int:
        return int(self.counts.sum())

    @property
    def tokens(self) -> int:
        return int(self.values @ self.counts)

    @property
    def mean(self) -> float:
        return ratio(self.tokens, self.documents)

    @property
    def max(self) -> int:
        return int(self.values[-1]) if len(self.values) else 0

    def quantile(self, share: float) -> int:
        """Return the smallest length that at least `share` of the documents do not exceed; 0 without documents."""
        return int(self.values[quantile(self.counts, share)]) if len(self.values) else 0

    def tokens_over(self, length: int) -> int:
        """Count tokens of the documents longer than this."""
        above = self.values > length
        return int(self.values[above] @ self.counts[above])

    def histogram(self) -> list[tuple[int, int, int, int]]:
        """Count in bins of equal width on a logarithmic scale: (first length, last length, documents, tokens) by bin.

        The first bin holds the shortest document, the last the longest; bins between may be empty.
        """
        if not len(self.values):
            return []
        octaves = max(1, int(np.ceil(np.log2(self.max + 1))))
        steps = np.arange(_BINS_PER_OCTAVE * octaves + 1)
        edges = distinct(np.round(2.0 ** (steps / _BINS_PER_OCTAVE)).astype(np.int64))
        edges = np.concatenate([[0], edges, [max(self.max, int(edges[-1])) + 1]])
        bin_of = np.searchsorted(edges, self.values, side="right") - 1
        documents = np.bincount(bin_of, self.counts, minlength=len(edges)).astype(np.int64)
        tokens = np.bincount(bin_of, self.counts * self.values, minlength=len(edges)).astype(np.int64)
        return [
            (int(edges[i]), min(int(edges[i + 1]) - 1, self.max), int(documents[i]), int(tokens[i]))
            for i in range(bin_of[0], bin_of[-1] + 1)
        ]
