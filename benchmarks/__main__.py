"""All benchmarks, one after the other: `python -m benchmarks [NAME…]`. Takes two hours and some 40 GB of disk."""

from __future__ import annotations

import subprocess
import sys

NAMES = (
    "tokenize",
    "families",
    "provenance",
    "plan",
    "mix",
    "mixture",
    "pack",
    "shuffle",
    "stats",
    "loader",
    "index_only",
    "cluster",
    "scaling",
    "memory",
    "soak",
)
ALL_OF_IT = {"plan": ("--billion", "--optimize", "--peers")}


def main() -> None:
    chosen = sys.argv[1:] or NAMES
    for name in chosen:
        if name not in NAMES:
            raise SystemExit(f"there is no benchmark {name!r}: choose from {', '.join(NAMES)}")
        print(f"\n== {name}\n", flush=True)
        subprocess.run([sys.executable, "-m", f"benchmarks.{name}", *ALL_OF_IT.get(name, ())], check=True)


main()
