"""What it costs `tokenize` to keep where documents come from: with and without `--no-provenance`, in turn.

    python -m benchmarks.provenance [--megabytes 110] [--rounds 21]

The corpus and the tokenizer are those of `benchmarks.tokenize`, the vocabulary the one of 50,257 entries. Each figure
is the CPU time of a process of its own, start-up included. The cost is the median of the rounds' ratios: the two runs
of a round follow each other, so that a slow minute of the machine touches both. Rounds differ by far more than the
cost on a shared machine: the standard error of their mean says how much they tell.
"""

from __future__ import annotations

import argparse
import statistics

from benchmarks.common import WORK, Run, fresh, packtool, rounds, run, save, table
from benchmarks.tokenize import corpus, tokenizer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=110)
    parser.add_argument("--rounds", type=int, default=21)
    given = parser.parse_args()
    path, size = corpus(given.megabytes)

    def tokenize(*options: str) -> Run:
        store = fresh(WORK / "provenance")
        return run(packtool("tokenize", path, "-o", store / "s", "--tokenizer", tokenizer("50k"), "-j", "1", *options))

    tokenize()  # the file is in the page cache from now on
    kept, left_out = rounds(given.rounds, tokenize, lambda: tokenize("--no-provenance"))
    cost = [a.cpu / b.cpu - 1 for a, b in zip(kept, left_out, strict=True)]
    error = statistics.stdev(cost) / len(cost) ** 0.5
    figures = {
        "text_bytes": size,
        "cpu_with": [each.cpu for each in kept],
        "cpu_without": [each.cpu for each in left_out],
        "cost": statistics.median(cost),
        "standard_error": error,
    }
    save("provenance", figures)
    table(
        ["round", "with", "without", "cost"],
        [
            [n, f"{a.cpu:.2f} s", f"{b.cpu:.2f} s", f"{c:+.1%}"]
            for n, (a, b, c) in enumerate(zip(kept, left_out, cost, strict=True), 1)
        ],
    )
    print(f"median cost {statistics.median(cost):+.1%}, standard error {error:.1%}, of {size / 10**6:.0f} MB")


if __name__ == "__main__":
    main()
