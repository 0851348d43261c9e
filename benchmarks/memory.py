"""Memory of `pack` by the number of documents: with --memory it stays, however many there are.

    python -m benchmarks.memory [--documents 5e6 20e6 40e6] [--memory 256MiB] [--strategies bfd concat seamless]

Documents of about 40 tokens, so that lengths, plan and order are as large as they get beside the tokens. Every tenth of
a second the memory of all processes is added up, without that which maps files: the system can take it back.
"""

from __future__ import annotations

import argparse
import json
import shutil

from benchmarks.common import WORK, lognormal_lengths, packtool, save, synthetic_store, table
from benchmarks.soak import sampled


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=float, nargs="+", default=[5e6, 20e6, 40e6])
    parser.add_argument("--memory", default="256MiB")
    parser.add_argument("--strategies", nargs="+", default=["bfd", "concat", "seamless"])
    options = parser.parse_args()

    output, rows = WORK / "memory-packed", []
    for documents in map(int, options.documents):
        lengths = lognormal_lengths(documents, median=30, sigma=0.8)
        store = synthetic_store(WORK / f"memory-{documents}", lengths, per_shard=1_000_000)
        for strategy in options.strategies:
            row = {"documents": documents, "tokens": int(lengths.sum()), "strategy": strategy}
            windows = [] if strategy == "concat" else ["--window-tokens", "100M"]
            for name, more in (("given", ["--memory", options.memory]), ("free", [])):
                command = packtool("pack", store, "-o", output, "--strategy", strategy, "-L", 2048, *windows, *more)
                seconds, found, _ = sampled([*command, "--workers", "2", "--overwrite", "-q"])
                planned = json.loads((output / "run.json").read_bytes())["planned"]["cpu"]
                row |= {f"{name}_s": seconds, f"{name}_plan_cpu_s": planned, f"{name}_peak_mb": max(found) / 1e6}
                shutil.rmtree(output)
            rows.append(row)
            print(row, flush=True)
    table(list(rows[0]), [list(row.values()) for row in rows])
    save("memory", {"memory": options.memory, "rows": rows})


if __name__ == "__main__":
    main()
