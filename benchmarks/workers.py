"""How much faster commands are with more workers on one machine, and that they write the same bytes.

    python -m benchmarks.workers [--megabytes 1000] [--rounds 3] [--results DIRECTORY] [--commit COMMIT]

The corpus is that of `benchmarks.corpus`. Workers are doubled up to the cores of the machine. Wall time counts, so
nothing else should run.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
from pathlib import Path
from typing import Any

from benchmarks.common import RESULTS, WORK, fresh, median, packtool, provenance, run, table
from benchmarks.corpus import generated

OUT = WORK / "workers"
PACK = ("--strategy", "bfd", "-L", "2048", "--shard-tokens", "8M")


def measure(megabytes: int, counts: list[int], rounds: int) -> list[dict[str, Any]]:
    """Each command with each number of workers, in turn; what one worker wrote is what the next command reads."""
    path, _ = generated(megabytes)
    commands = {
        "tokenize": lambda out: packtool("tokenize", path, "-o", out, "-q"),
        "pack": lambda out: packtool("pack", OUT / "tokenize", "-o", out, "-q", *PACK),
        "shuffle": lambda out: packtool("shuffle", OUT / "pack", "-o", out, "-q", "--epoch", "1"),
    }
    found = []
    for name, command in commands.items():
        for count in counts:
            runs = []
            for _ in range(rounds):
                out = OUT / name if count == 1 else OUT / "out"
                shutil.rmtree(out, ignore_errors=True)
                os.sync()
                runs.append(run([*command(out), "-j", str(count)]))
            if (out / "manifest.json").read_bytes() != (OUT / name / "manifest.json").read_bytes():
                raise SystemExit(f"{name} with {count} workers wrote other bytes")
            found.append(
                {
                    "command": name,
                    "workers": count,
                    "wall": median(runs, "wall"),
                    "walls": [each.wall for each in runs],
                    "cpu": median(runs, "cpu"),
                }
            )
            print(found[-1], flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=1000, help="of text")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--commit", help="of this code, where there is no history")
    given = parser.parse_args()
    cores = os.cpu_count() or 1
    counts = [1 << power for power in range(cores.bit_length())]
    fresh(OUT)
    record = provenance()
    record["commit"] = given.commit or record["commit"]
    record |= {"text_bytes": generated(given.megabytes)[1]}
    record["found"] = found = measure(given.megabytes, counts, given.rounds)
    (given.results / "workers.json").write_text(json.dumps(record, indent=2) + "\n")
    alone = {each["command"]: each["wall"] for each in found if each["workers"] == 1}
    names = ("command", "workers", "wall", "cpu")
    table(
        ["command", "workers", "seconds", "CPU s", "times as fast"],
        [[*(each[name] for name in names), alone[each["command"]] / each["wall"]] for each in found],
    )


if __name__ == "__main__":
    main()
