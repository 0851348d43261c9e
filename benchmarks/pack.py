"""Moving tokens: the gather, and the whole `pack` command, against `cp` on the same bytes.

    python -m benchmarks.pack [--tokens 1e9] [--rounds 3]

`cp` reads and writes each byte once; that is the least any packing can do. The bare gather writes rows to files, as
`cp` does, without hashing or waiting for the disk, with a thread for each core, as the command has; the whole command
hashes, syncs and writes the segment table, and is held against `cp IN OUT && sync OUT`, its start-up (imports) apart.
Segments of 300 tokens in random order, and rows of `concat`.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from benchmarks.common import (
    WORK,
    Run,
    fresh,
    lognormal_lengths,
    median,
    packtool,
    rounds,
    run,
    save,
    synthetic_store,
    table,
)

LENGTH = 2048


def bare_gather(store: Path, output: Path, strategy: str) -> None:
    """In a process of its own: gather all rows of a plan and write them, nothing else."""
    from packtool.packing import PackOptions, plan
    from packtool.shuffling.permutation import permutation
    from packtool.storage.files import WRITE_BYTES
    from packtool.storage.token_store import Corpus
    from packtool.writing.gather import Gatherer
    from packtool.writing.layout import Layout

    corpus = Corpus([store])
    (only,) = plan(strategy, corpus.lengths(), PackOptions(sequence_length=LENGTH))
    layout = Layout(only, permutation(only.movable_atoms, seed=42))
    gather = Gatherer(corpus.shards, corpus.locate, dtype=corpus.dtype, pad_id=0, eos_id=0, longest_fill=LENGTH)
    corpus.locate(np.array([0]))
    pieces = [layout.segments(a, b) for a, b in layout.batches(0, layout.rows)]
    threads = os.cpu_count() or 1

    def write(number: int) -> None:
        with (output / f"rows-{number}").open("wb", buffering=0) as file:
            for each in pieces[number::threads]:
                data = gather(each).view(np.uint8).data
                for first in range(0, len(data), WRITE_BYTES):
                    file.write(data[first : first + WRITE_BYTES])

    # What `cp` meets in its turn: pages that were free a moment ago. A virtual machine gives pages that stay free back
    # to its host, and planning takes long enough for that.
    warm = output / "warm"
    with warm.open("wb") as file:
        for _ in range(0, corpus.tokens * corpus.dtype.itemsize, WRITE_BYTES):
            file.write(bytes(WRITE_BYTES))
    warm.unlink()

    began, began_cpu = time.perf_counter(), time.process_time()
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(write, range(threads)))
    print(json.dumps({"wall": time.perf_counter() - began, "cpu": time.process_time() - began_cpu}))


def inner(result: Run) -> Run:
    """The times that a process measured itself, without its start-up."""
    figures = json.loads(result.output)
    seconds = figures.get("run", {}).get("written", figures)
    return Run(seconds["wall"], seconds["cpu"], result.peak_mb, "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=float, default=1e9, help="size of the store")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--gather", nargs=3, metavar=("STORE", "OUTPUT", "STRATEGY"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.gather:
        bare_gather(Path(options.gather[0]), Path(options.gather[1]), options.gather[2])
        return

    # Lognormal with sigma 0.8 and mean 300: median = 300 / exp(0.32).
    lengths = lognormal_lengths(int(options.tokens / 300), median=218, sigma=0.8)
    store = synthetic_store(WORK / f"store-{options.tokens:.0e}", lengths)
    size = 2 * int(lengths.sum(dtype=np.int64))
    out = WORK / "out"
    copy = f"cp {store}/tokens-* {out}/"

    def prepared(command: list[str]) -> Run:
        fresh(out)
        run(["sync"])
        return run(command)

    def gather_of(strategy: str) -> Run:
        return inner(prepared([sys.executable, "-m", "benchmarks.pack", "--gather", str(store), str(out), strategy]))

    def pack_of(strategy: str) -> Run:
        arguments = ("--strategy", strategy, "-L", str(LENGTH), "--overwrite", "--json", "-q")
        return inner(prepared(packtool("pack", store, "-o", out, *arguments)))

    names = ["cp", "cp && sync", "gather bfd", "gather concat", "pack bfd", "pack concat"]
    results = rounds(
        options.rounds,
        lambda: prepared(["sh", "-c", copy]),
        lambda: prepared(["sh", "-c", f"{copy} && sync {out}/*"]),
        lambda: gather_of("bfd"),
        lambda: gather_of("concat"),
        lambda: pack_of("bfd"),
        lambda: pack_of("concat"),
    )
    walls = {name: median(found, "wall") for name, found in zip(names, results, strict=True)}
    rows = []
    for name, found in zip(names, results, strict=True):
        base = walls["cp && sync"] if name.startswith("pack") else walls["cp"]
        wall = walls[name]
        rows.append(
            (name, wall, median(found, "cpu"), size / wall / 1e9, f"{base / wall:.0%}", round(median(found, "peak_mb")))
        )
    table(("what", "wall s", "CPU s", "GB/s", "of cp (pack: of cp && sync)", "peak MB"), rows)
    save(
        "pack",
        {
            "tokens": int(options.tokens),
            "bytes": size,
            "rows": [
                dict(zip(("what", "wall", "cpu", "gb_per_s", "of_cp", "peak_mb"), row, strict=True)) for row in rows
            ],
        },
    )
    fresh(out).rmdir()


if __name__ == "__main__":
    main()
