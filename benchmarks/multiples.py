"""What documents that begin at multiples cost: in rows, and in planning. Figures of docs/long-context.md.

    python -m benchmarks.multiples [--documents 4000000] [--rounds 7]

Rows more than without a multiple, and padding that rounds documents up, for documents of several average lengths; and
CPU seconds of planning with a multiple and without, in pairs, one right after the other.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any

import numpy as np

from benchmarks.common import lognormal_lengths, save, table
from packtool.options.names import STRATEGIES
from packtool.planning.packing import PackOptions, plan
from packtool.planning.plan import Ints

TOKENS, LENGTH, SIGMA = 60_000_000, 8192, 1.0
AVERAGES = (150, 600, 2500)
PARALLEL = (2, 4, 8, 16)
"""Devices that split a row."""
ROUNDED = 8
"""The multiple with which planning is timed."""


def rows(average: int, parallel: int) -> dict[str, Any]:
    """Rows that best fit makes with the multiple of so many devices, beside those without."""
    median = average / np.exp(SIGMA**2 / 2)
    lengths = lognormal_lengths(TOKENS // average, median=median, sigma=SIGMA)
    options = {"sequence_length": LENGTH, "mix_rows": False}
    (plain,), (rounded,) = (
        plan("bfd", lengths, PackOptions(document_multiple=multiple, **options)) for multiple in (1, 2 * parallel)
    )
    more = rounded.rows / plain.rows - 1
    return {"average": average, "cp": parallel, "multiple": 2 * parallel, "rows": plain.rows, "more rows": more}


def planning(strategy: str, lengths: Ints, rounds: int) -> dict[str, Any]:
    """CPU seconds with a multiple and without, each round a pair, now the one first and now the other."""
    size = {} if "buckets" in strategy else {"sequence_length": 2048}
    mixing = {"mix_rows": False} if strategy in ("ffd", "bfd") else {}
    taken: dict[int, list[float]] = {1: [], ROUNDED: []}
    for number in range(rounds):
        for multiple in (1, ROUNDED) if number % 2 else (ROUNDED, 1):
            began = time.process_time()
            plan(strategy, lengths, PackOptions(document_multiple=multiple, **size, **mixing))
            taken[multiple].append(time.process_time() - began)
    million = len(lengths) / 1e6
    plain, rounded = (1e3 * statistics.median(taken[multiple]) / million for multiple in (1, ROUNDED))
    ratio = statistics.median(b / a for a, b in zip(taken[1], taken[ROUNDED], strict=True))
    return {"strategy": strategy, "plain, ms": plain, "rounded, ms": rounded, "ratio": ratio}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=4_000_000)
    parser.add_argument("--rounds", type=int, default=7)
    given = parser.parse_args()
    costs = [rows(average, parallel) for parallel in PARALLEL for average in AVERAGES]
    lengths = lognormal_lengths(given.documents)
    times = [planning(name, lengths, given.rounds) for name in STRATEGIES if name != "first-fit-shuffle"]
    save("multiples", {"length": LENGTH, "tokens": TOKENS, "rows": costs, "documents": given.documents, "times": times})
    for found in (costs, times):
        table(list(found[0]), [list(each.values()) for each in found])


if __name__ == "__main__":
    main()
