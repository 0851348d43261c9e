"""How long ranks wait for the slowest when the rows of global batches are dealt, and what dealing takes.

    python -m benchmarks.dealing [--batches 64]

Waiting is one minus the mean over the largest sum of query-key pairs, which attention takes as long as; rows are best
fit, of documents of lognormal lengths. No dealing of equally many rows waits less than the bound: the rank with the
largest row has the smallest others.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

from benchmarks.common import lognormal_lengths, save, table
from packtool.planning.packing import PackOptions, plan
from packtool.planning.plan import I64
from packtool.planning.shuffling.balance import STEP, TURN, as_they_come, dealt_in, pairs_of, time_taken

CASES = (
    (1.6, 131_072, 64, 512),
    (1.0, 131_072, 64, 512),
    (1.0, 131_072, 8, 512),
    (1.6, 32_768, 64, 512),
    (1.0, 32_768, 64, 512),
    (1.0, 32_768, 8, 64),
    (1.6, 8192, 64, 512),
    (1.0, 8192, 64, 512),
    (1.2, 2048, 64, 512),
)
"""Sigma of the lengths, tokens in a row, ranks, rows in a global batch."""
MEDIAN = 1500
ROUNDS = 5


def global_batches(sigma: float, length: int, rows: int, batches: int) -> I64:
    """Pairs of the rows of some global batches, each a row."""
    documents = int(batches * rows * length / (MEDIAN * np.exp(sigma**2 / 2)))
    lengths = lognormal_lengths(documents, median=MEDIAN, sigma=sigma)
    (packed,) = plan("bfd", lengths, PackOptions(sequence_length=length))
    pairs = pairs_of(packed.segments(np.random.default_rng(0).permutation(packed.rows)))
    return pairs[: len(pairs) // rows * rows].reshape(-1, rows)


def waiting(costs: I64, ranks: int) -> dict[str, Any]:
    """Shares of the time that ranks wait, and CPU milliseconds to deal a global batch."""
    mean, each = costs.sum(axis=1) / ranks, costs.shape[1] // ranks
    ordered = np.sort(costs, axis=1)
    least = np.maximum(mean, ordered[:, -1] + ordered[:, : each - 1].sum(axis=1))
    found: dict[str, Any] = {"bound": float((1 - mean / least).mean())}
    for way in (STEP, TURN):
        came = time_taken(costs, as_they_come(costs, ranks), way)
        taken = []
        for _ in range(ROUNDS):
            began = time.process_time()
            dealt = dealt_in(way, costs, ranks, None if way == STEP else 1)
            taken.append(time.process_time() - began)
        found[f"{way}, as they come"] = float((1 - mean / came).mean())
        found[way] = float((1 - mean / time_taken(costs, dealt, way)).mean())
        found[f"{way}, ms"] = 1e3 * min(taken) / len(costs)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batches", type=int, default=64)
    given = parser.parse_args()
    rows = []
    for sigma, length, ranks, batch in CASES:
        case = {"sigma": sigma, "length": length, "ranks": ranks, "batch": batch}
        rows.append(case | waiting(global_batches(sigma, length, batch, given.batches), ranks))
    save("dealing", {"median": MEDIAN, "found": rows})
    table(list(rows[0]), [list(row.values()) for row in rows])


if __name__ == "__main__":
    main()
