"""Memory of `pack` and `shuffle` by the number of documents: with --memory it stays, however many there are.

    python -m benchmarks.memory [--documents 5e6 20e6 40e6] [--memory 256MiB] [--kinds bfd one-window index-only]

Documents of about 40 tokens, so that lengths, plan and order are as large as they get beside the tokens. Every tenth of
a second the memory of all processes is added up, without that which maps files: the system can take it back.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
from pathlib import Path
from typing import Any

from benchmarks.common import WORK, lognormal_lengths, packtool, save, synthetic_store, table
from benchmarks.soak import sampled

WINDOWS = ["--window-tokens", "100M"]


def commands(store: Path, shuffled: Path) -> dict[str, list[Any]]:
    """What can be measured, by name.

    Args:
        store: of documents.
        shuffled: packed and shuffled rows of it, of 128 tokens.
    """
    rows, concat = ["-L", 2048], ["pack", store, "--strategy", "concat"]
    index_only = ["pack", store, "--strategy", "bfd", *rows, "--index-only"]
    first_fit = ["pack", store, "--strategy", "first-fit-shuffle", *rows]
    return {
        "bfd": ["pack", store, "--strategy", "bfd", *rows, *WINDOWS],
        "seamless": ["pack", store, "--strategy", "seamless", *rows, *WINDOWS],
        "concat": [*concat, *rows],
        "mixture": [*concat, *rows, "--mix", f"{store.name}=1.3x", "--min-tokens", 10],
        "partial": ["shuffle", store, "--method", "partial", "--batch-size", 512, *rows],
        "one-window": ["pack", store, "--strategy", "bfd", *rows],
        "index-only": index_only,
        "index-only-windows": [*index_only, *WINDOWS],
        "first-fit-shuffle": first_fit,
        "first-fit-shuffle-windows": [*first_fit, *WINDOWS],
        "again": ["shuffle", shuffled, "--epoch", 1],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=float, nargs="+", default=[5e6, 20e6, 40e6])
    parser.add_argument("--memory", default="256MiB")
    parser.add_argument("--kinds", nargs="+", default=["bfd", "concat", "seamless", "mixture", "partial", "again"])
    options = parser.parse_args()

    output, measured = WORK / "memory-packed", []
    for documents in map(int, options.documents):
        lengths = lognormal_lengths(documents, median=30, sigma=0.8)
        store = synthetic_store(WORK / f"memory-{documents}", lengths, per_shard=1_000_000)
        shuffled = WORK / f"memory-shuffled-{documents}"
        if "again" in options.kinds and not shuffled.is_dir():
            small = ["--strategy", "concat", "-L", 128, "--memory", options.memory, "-q"]
            subprocess.run(packtool("pack", store, "-o", shuffled, *small), check=True)
        known = commands(store, shuffled)
        for kind in options.kinds:
            row: dict[str, Any] = {"documents": documents, "tokens": int(lengths.sum()), "kind": kind}
            for name, more in (("given", ["--memory", options.memory]), ("free", [])):
                command = packtool(*known[kind], "-o", output, *more, "--workers", "2", "--overwrite", "-q")
                seconds, found, _ = sampled(command)
                row |= {f"{name}_s": seconds, f"{name}_peak_mb": max(found) / 1e6}
                shutil.rmtree(output)
            measured.append(row)
            print(row, flush=True)
        shutil.rmtree(shuffled, ignore_errors=True)
    table(list(measured[0]), [list(row.values()) for row in measured])
    save("memory", {"memory": options.memory, "rows": measured})


if __name__ == "__main__":
    main()
