"""Reading rows for training: `packtool.torch` beside NumPy and the loaders of other formats, on the same rows.

The rows are exported with `packtool export` to what each loader reads. All run in one environment, with one PyTorch, on
files in the page cache, one batch of 8 rows of 2048 tokens at a time, each with one worker process and in the training
process itself. CPU seconds are those of the training process and its worker.

    python -m benchmarks.loader [--tokens 3e7] [--large 2.5e8] [--seconds 3] [--rounds 3] [--prepare]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import WORK, lognormal_lengths, packtool, run, save, synthetic_store, table
from benchmarks.peers import environment

ROOT = Path(__file__).parents[1]
LENGTH = 2048
BATCH = 8
FORMATS = {"mosaicml": "mds", "litdata": "litdata", "datasets": "arrow"}
NAMES = {
    "plain": "NumPy",
    "packtool_ids": "packtool, ids and labels",
    "packtool_all": "packtool, all fields",
    "mosaicml": "MosaicML Streaming",
    "litdata": "litdata",
    "datasets": "Hugging Face datasets",
}


def packed(name: str, tokens: float, shard_tokens: int) -> Path:
    """Rows of about so many random tokens; kept from one run to the next."""
    path = WORK / name
    if not (path / "manifest.json").exists():
        store = synthetic_store(WORK / f"{name}-store", lognormal_lengths(int(tokens / 820)))
        options = ("--strategy", "concat", "-L", str(LENGTH), "--shard-tokens", str(shard_tokens), "--overwrite", "-q")
        run(packtool("pack", store, "-o", path, *options))
    return path


def exported(source: Path, name: str) -> Path:
    path = source.with_name(f"{source.name}-{name}")
    if not (path / "manifest.json").exists():
        run(packtool("export", source, "-o", path, "--format", name, "--overwrite", "-q"))
    return path


def measured(python: Path, *arguments: object) -> dict[str, float]:
    """What a run in the peers' environment found."""
    found = run(
        [python, "-m", "benchmarks.loader_run", *map(str, arguments)],
        env={"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
    )
    figures: dict[str, float] = json.loads(found.output.splitlines()[-1])
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=float, default=3e7)
    parser.add_argument("--large", type=float, default=2.5e8, help="tokens of the dataset to start on, 2 bytes each")
    parser.add_argument("--seconds", type=float, default=3, help="of each run")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--prepare", action="store_true", help="make the environment and the datasets, and stop")
    options = parser.parse_args()
    os.chdir(ROOT)
    python = environment("formats")
    rows = packed("loader-rows", options.tokens, 1 << 22)
    places = {name: exported(rows, FORMATS[name]) if name in FORMATS else rows for name in NAMES}
    large = packed("loader-large", options.large, 1 << 26)
    many = packed("loader-many", 1000 * LENGTH, LENGTH)
    if options.prepare:
        return
    runs = [(name, workers) for name in NAMES for workers in (0, 1) if not (name == "plain" and workers)]
    found: dict[tuple[str, int], list[dict[str, float]]] = {each: [] for each in runs}
    for _ in range(options.rounds):
        for name, workers in runs:
            found[name, workers].append(measured(python, name, places[name], BATCH, workers, options.seconds))
    base = _median(found["plain", 0], "wall")
    figures: list[dict[str, Any]] = []
    for name, workers in runs:
        wall, cpu = (_median(found[name, workers], each) for each in ("wall", "cpu"))
        figures.append({"reader": name, "workers": workers, "tokens_per_second": wall, "per_cpu_second": cpu})
    table(
        ("reader", "workers", "million tokens/s", "of NumPy", "million tokens/CPU s"),
        [
            (NAMES[each["reader"]], each["workers"], *(f"{x:.3g}" for x in (
                each["tokens_per_second"] / 1e6, each["tokens_per_second"] / base, each["per_cpu_second"] / 1e6)))
            for each in figures
        ],
    )  # fmt: skip
    starts = {}
    for workers in (1, 2):
        found_seconds = [measured(python, "start", large, workers)["first_batch"] for _ in range(options.rounds)]
        starts[workers] = statistics.median(found_seconds)
    opens = [measured(python, "open", many)["open"] for _ in range(options.rounds)]
    shards = len(list(many.glob("tokens-*.npy")))
    megabytes = sum(file.stat().st_size for file in large.glob("tokens-*.npy")) / 1e6
    print()
    for workers, seconds in starts.items():
        print(f"first batch of {megabytes:.0f} MB, {workers} spawned: {seconds:.2f} s")
    print(f"packtool.open of {shards} shards: {1000 * statistics.median(opens):.0f} ms")
    save(
        "loader",
        {
            "readers": figures,
            "start": {
                "megabytes": megabytes,
                "spawned": [{"workers": workers, "seconds": seconds} for workers, seconds in starts.items()],
            },
            "open": {"shards": shards, "seconds": statistics.median(opens)},
        },
    )


def _median(runs: list[dict[str, float]], name: str) -> float:
    return float(np.median([each[name] for each in runs]))


if __name__ == "__main__":
    main()
