"""`packtool shuffle` against copying the same bytes: in memory, beyond memory, and in small atoms.

The command is held against ``cp IN OUT && sync OUT``; the bare move of rows, which neither hashes nor flushes, but has
the command's threads, against ``cp``. All in the same run, in turn, each preceded by ``sync``. Peak memory is the
largest resident set, mapped files included.

    python -m benchmarks.shuffle [--tokens 1e9] [--large 4e9] [--small 1e8] [--rounds 3]

Needs four times the size of the largest dataset on disk (2 bytes a token).
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
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
from packtool.writing.layout import Layout, unit_range
from packtool.writing.packed_source import UnitCopier

LENGTH = 2048
MEAN = 300
MEMORY = "1GiB"


def dataset(tokens: float) -> Path:
    """A packed dataset of about so many tokens in corpus order; kept from one run to the next."""
    path = WORK / f"rows-{tokens:.0e}"
    if not (path / "manifest.json").exists():
        # Lognormal with sigma 0.8 and mean 300: median = 300 / exp(0.32).
        store = synthetic_store(
            WORK / f"rows-store-{tokens:.0e}", lognormal_lengths(int(tokens / MEAN), median=218, sigma=0.8)
        )
        fresh(path)
        options = ("--strategy", "concat", "-L", str(LENGTH), "--no-shuffle", "--overwrite", "-q")
        run(packtool("pack", store, "-o", path, *options))
        fresh(store).rmdir()
    return path


def bare_move(source: Path, output: Path) -> None:
    """Rows in shuffled order to one file, and nothing else, by the command's threads; prints its own times."""
    from packtool.engines import available_cpus
    from packtool.shuffling.atom import atom_shuffles
    from packtool.storage.packed import PackedDataset
    from packtool.writing.stored_plan import stored_plans

    plans = stored_plans(PackedDataset(source))
    began, cpu = time.perf_counter(), time.process_time()
    for plan, shuffle in zip(plans, atom_shuffles(plans, seed=42), strict=True):
        layout = Layout(plan, shuffle.order())
        copy = UnitCopier(plan.bucket, plan.unit)
        with (output / "moved").open("wb", buffering=0) as file, ThreadPoolExecutor(available_cpus()) as pool:
            batches = [
                pool.submit(_move, layout, copy, file.fileno(), *batch) for batch in layout.batches(0, layout.rows)
            ]
            for batch in batches:
                batch.result()
    print(json.dumps({"wall": time.perf_counter() - began, "cpu": time.process_time() - cpu}))


def _move(layout: Layout, copy: UnitCopier, file: int, first: int, last: int) -> None:
    tokens = copy(layout.units(*unit_range(layout.plan, first, last))).reshape(-1).view(np.uint8)
    os.pwrite(file, tokens, first * (len(tokens) // (last - first)))


def inner(result: Run) -> Run:
    """The times that a process measured itself, without its start-up."""
    figures = json.loads(result.output)
    seconds = figures.get("run", {}).get("written", figures)
    return Run(seconds["wall"], seconds["cpu"], result.peak_mb, "")


def compare(source: Path, count: int, actions: dict[str, tuple[str, ...]]) -> list[dict[str, object]]:
    """Time options of `packtool shuffle` against the copy of all files of the dataset.

    Args:
        source: the dataset.
        count: rounds.
        actions: options for each name; ``move`` alone is the bare move.
    """
    out = WORK / "shuffled"
    copy = f"cp {source}/* {out}/"

    def prepared(command: list[str]) -> Run:
        fresh(out)
        run(["sync"])
        return run(command)

    def action(options: tuple[str, ...]) -> Callable[[], Run]:
        if options == ("move",):
            return lambda: inner(
                prepared([sys.executable, "-m", "benchmarks.shuffle", "--move", str(source), str(out)])
            )
        command = packtool("shuffle", source, "-o", out, "--overwrite", "--json", "-q", *options)
        return lambda: inner(prepared(command))

    names = ["cp", "cp && sync", *actions]
    found = rounds(
        count,
        lambda: prepared(["sh", "-c", copy]),
        lambda: prepared(["sh", "-c", f"{copy} && sync {out}/*"]),
        *(action(options) for options in actions.values()),
    )
    fresh(out).rmdir()
    walls = {name: median(runs, "wall") for name, runs in zip(names, found, strict=True)}
    size = sum(file.stat().st_size for file in source.glob("tokens-*"))
    return [
        {
            "what": name,
            "token_gb": size / 1e9,
            "wall": walls[name],
            "cpu": median(runs, "cpu"),
            "of_copy": walls["cp" if actions.get(name) in (None, ("move",)) else "cp && sync"] / walls[name],
            "peak_mb": round(max(each.peak_mb for each in runs)),
        }
        for name, runs in zip(names, found, strict=True)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=float, default=1e9, help="of the dataset that fits in memory")
    parser.add_argument("--large", type=float, default=4e9, help="of the dataset that does not")
    parser.add_argument("--small", type=float, default=1e8, help="of the dataset in small atoms")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--move", nargs=2, metavar=("SOURCE", "OUTPUT"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.move:
        bare_move(Path(options.move[0]), Path(options.move[1]))
        return
    rows = compare(
        dataset(options.tokens),
        options.rounds,
        {f"move rows of {LENGTH}": ("move",), "shuffle in memory": ("--memory", "64GiB")},
    )
    rows += compare(
        dataset(options.small),
        options.rounds,
        {
            "atoms of 8 in memory": ("-A", "8", "--memory", "64GiB"),
            "atoms of 8 beyond memory": ("-A", "8", "--memory", "256MiB"),
        },
    )
    rows += compare(dataset(options.large), 1, {f"shuffle beyond memory, {MEMORY}": ("--memory", MEMORY)})
    table(
        ("what", "GB of tokens", "wall s", "CPU s", "of cp (shuffle: of cp && sync)", "peak MB"),
        [
            (row["what"], row["token_gb"], row["wall"], row["cpu"], f"{row['of_copy']:.0%}", row["peak_mb"])
            for row in rows
        ],
    )
    save("shuffle", {"load_average": os.getloadavg()[-1], "rows": rows})


if __name__ == "__main__":
    main()
