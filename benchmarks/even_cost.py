"""What `pack --even-cost` gains where each rank has one row, beside rows mixed as ever and the least there could be.

    python -m benchmarks.even_cost

300,000 documents of lognormal lengths, packed best fit; a global batch has a row for each rank. Shares of the time that
ranks wait for the slowest, counted in query-key pairs, and with the linear part of a model's tokens; and how mixed rows
stay: the variance of log length between rows, as a multiple of that of random ones.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.common import lognormal_lengths, save, table
from packtool import packing
from packtool.metrics.homogeneity import HomogeneityCounts
from packtool.packing import PackOptions
from packtool.plan import I64, Segments
from packtool.shuffling.balance import PER_HIDDEN, dealt_in, pairs_of, waiting

DOCUMENTS, MEDIAN = 300_000, 1500
CASES = ((1.6, 131_072), (1.6, 32_768), (1.0, 131_072), (1.0, 32_768), (0.8, 131_072))
"""Sigma, row length."""
RANKS = ((8, 0), (64, 0), (64, 4096))
"""How many there are, hidden size."""


def evened(sigma: float, size: int) -> list[dict[str, Any]]:
    """The rows of one plan, for each number of ranks."""
    lengths = lognormal_lengths(DOCUMENTS, median=MEDIAN, sigma=sigma)
    pairs: dict[str, I64] = {}
    apart = {}
    for name, even in (("mixed", False), ("even", True)):
        (plan,) = packing.plan("bfd", lengths, PackOptions(sequence_length=size, even_cost=even))
        rows = plan.segments(np.random.default_rng(0).permutation(plan.rows))
        pairs[name] = pairs_of(rows)
        counts = HomogeneityCounts()
        counts.add(rows)
        likeness = counts.result()
        apart[f"{name}, between rows"] = likeness.between_rows / likeness.random_rows
        if not even:
            pairs["bound"] = at_best(rows, int(pairs[name].sum()))
    found = []
    for ranks, hidden in RANKS:
        row = {"sigma": sigma, "row length": size, "ranks": ranks, "hidden size": hidden}
        for name, each in pairs.items():
            batches = each[: len(each) // ranks * ranks].reshape(-1, ranks) + PER_HIDDEN * hidden * size
            row[name] = float(waiting(batches, dealt_in("", batches, ranks)).mean())
        found.append(row | apart)
    return found


def at_best(rows: Segments, pairs: int) -> I64:
    """Pairs of each row if they could be evened out at will, but for those in its longest segment.

    >>> one = np.array
    >>> rows = Segments(one([0, 1, 2, 3, 4]), one([0] * 5), one([4, 1, 2, 2, 1]), one([0] * 5), one([0, 1, 3, 5]))
    >>> at_best(rows, 18).tolist()
    [10, 4, 4]
    """
    longest = np.maximum.reduceat(rows.length, rows.offsets[:-1])
    least = longest * (longest + 1) // 2
    # Rows below some level rise to it and the others stay: the level at which there are as many pairs as before.
    ordered = np.sort(least)
    above = np.cumsum(ordered[::-1])[::-1] - ordered
    levels = (pairs - above) / np.arange(1, len(ordered) + 1)
    level = levels[np.flatnonzero(levels >= ordered)[-1]]
    found: I64 = np.maximum(least, int(level))
    return found


def main() -> None:
    found = [row for sigma, size in CASES for row in evened(sigma, size)]
    save("even_cost", {"documents": DOCUMENTS, "median": MEDIAN, "found": found})
    table(list(found[0]), [list(row.values()) for row in found])


if __name__ == "__main__":
    main()
