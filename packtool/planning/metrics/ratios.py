"""Shares, quantiles and sums of counts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from packtool.planning.plan import I64


def ratio(part: int, whole: int) -> float:
    """Divide part by whole; 0 where the whole is 0."""
    return part / whole if whole else 0.0


def quantile(counts: I64, share: float) -> int:
    """Find the smallest value that at least `share` of the items do not exceed; ``counts[v]`` items have value v.

    >>> quantile(np.array([0, 5, 4, 1]), 0.5), quantile(np.array([0, 5, 4, 1]), 0.99)
    (1, 3)
    """
    reached = np.cumsum(counts)
    return int(np.searchsorted(reached, share * reached[-1])) if len(counts) and reached[-1] else 0


def histogram_sum(histograms: Sequence[I64]) -> I64:
    """Add up histograms of different sizes."""
    total = np.zeros(max(map(len, histograms), default=0), np.int64)
    for histogram in histograms:
        total[: len(histogram)] += histogram
    return total
