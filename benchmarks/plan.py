"""Planning: from document lengths to rows, no token touched.

    python -m benchmarks.plan [--rounds 3] [--largest 1e8] [--billion] [--optimize] [--peers]

Documents have lognormal lengths, median 400 and sigma 1.2. Each figure comes from processes of its own; the CPU seconds
are those of planning and assignment, the peak memory that of the whole process, lengths included. `--billion` plans 1e9
documents in windows of 2^36 tokens. `--optimize` packs lengths on which greedy packing does worst. `--peers` plans a
million documents with TRL and OLMo-core, too, which it installs into environments under benchmarks/work.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.common import WORK, lognormal_lengths, run, save, table

DEFAULT_WINDOW = 1 << 34
BILLION_WINDOW = 1 << 36
POOL = 1 << 24  # lengths drawn for a billion documents, which repeat them
STRATEGIES = ("concat", "padding", "ffd", "bfd", "bfd-extra", "seamless", "buckets", "length-buckets", "decompose")


def measure(strategy: str, documents: int, length: int, window: int, optimize: bool) -> dict[str, Any]:
    """In a process of its own: plan once, and say what it cost and how much padding it leaves."""
    from packtool.packing import PackOptions, plan, plan_windows

    rows_differ = strategy in ("buckets", "length-buckets")
    options = PackOptions(
        sequence_length=None if rows_differ else length,
        window_tokens=window,
        optimize=optimize,
        mix_rows=False if strategy in ("ffd", "bfd") else None,  # as peers plan; benchmarks.mix measures mixing
    )
    if documents > 10**8:
        pool = lognormal_lengths(POOL)
        began = time.process_time()
        rows = sum(only.rows for _, (only,) in plan_windows(strategy, _blocks(pool, documents), options))
        return {"cpu": time.process_time() - began, "rows": rows}
    lengths = few_to_a_row(documents) if optimize else draw(documents)
    began = time.process_time()
    plans = plan(strategy, lengths, options)
    seconds = time.process_time() - began
    figures: dict[str, Any] = {"cpu": seconds, "rows": sum(only.rows for only in plans)}
    if strategy in ("ffd", "bfd"):
        tokens = int(lengths.sum(dtype=np.int64)) - plans[0].eos_omitted
        figures["padding"] = 1 - tokens / (plans[0].rows * length)
        if optimize:
            figures["bound"] = 1 - tokens / (plans[0].least_rows * length)
    return figures


def draw(documents: int) -> Any:
    """Lengths drawn block by block, so that drawing them takes no memory that planning does not."""
    lengths = np.empty(documents, np.uint32)
    for seed, first in enumerate(range(0, documents, POOL // 16)):
        part = lengths[first : first + POOL // 16]
        part[:] = lognormal_lengths(len(part), seed=seed)
    return lengths


def few_to_a_row(documents: int) -> Any:
    """Two to four documents fill a row of 2048: the kind of lengths that greedy packing likes least."""
    return np.clip(lognormal_lengths(documents, median=700, sigma=0.5), 200, 2048)


def _blocks(pool: Any, documents: int) -> Iterator[Any]:
    for first in range(0, documents, len(pool)):
        yield pool[: documents - first]


def repeated(
    rounds: int, strategy: str, documents: int, length: int, window: int = DEFAULT_WINDOW, optimize: bool = False
) -> dict[str, Any]:
    """The median of several processes."""
    task = json.dumps([strategy, documents, length, window, optimize])
    runs = [run([sys.executable, "-m", "benchmarks.plan", "--measure", task]) for _ in range(rounds)]
    figures = [json.loads(each.output) for each in runs]
    cpu = statistics.median(figure["cpu"] for figure in figures)
    return {
        "strategy": strategy + (" --optimize" if optimize else ""),
        "documents": documents,
        "sequence_length": length,
        **figures[0],
        "cpu": cpu,
        "ns_per_document": cpu / documents * 1e9,
        "peak_mb": round(max(each.peak_mb for each in runs)),
    }


def peers(rounds: int) -> list[dict[str, Any]]:
    """The same million documents, planned by others and by `bfd`, in turn."""
    from benchmarks.peers import environment

    lengths = lognormal_lengths(1_000_000)
    WORK.mkdir(exist_ok=True)
    np.save(WORK / "lengths.npy", lengths)
    found = []
    for length in (2048, 8192):
        ours = repeated(rounds, "bfd", len(lengths), length)
        found.append(_peer("packtool bfd", length, ours["cpu"], 1.0, ours["rows"]))
        for name in ("trl", "olmo"):
            target = WORK / "bins.npz"
            command = [environment(name), "-m", "benchmarks.peer_plan", name, WORK / "lengths.npy", str(length), target]
            cpu = statistics.median(float(run(command).output.split()[-1]) for _ in range(rounds))
            rows = len(np.load(target)["offsets"]) - 1
            found.append(_peer(name, length, cpu, cpu / ours["cpu"], rows))
    return found


def _peer(who: str, length: int, cpu: float, times: float, rows: int) -> dict[str, Any]:
    return {"who": who, "sequence_length": length, "cpu": cpu, "times_ours": times, "rows": rows}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--largest", type=float, default=1e8, help="documents, where the curve ends")
    parser.add_argument("--billion", action="store_true")
    parser.add_argument("--optimize", action="store_true")
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(*json.loads(options.measure))))
        return

    few = min(10**7, int(options.largest))
    powers = [power for power in range(5, 9) if 10**power <= options.largest]
    sections = {
        "curve": lambda: [repeated(options.rounds, "bfd", 10**power, 8192) for power in powers],
        "strategies": lambda: [repeated(options.rounds, name, few, 8192) for name in STRATEGIES],
        "padding": lambda: [repeated(1, name, 10**6, 2048) for name in ("ffd", "bfd")],
    }
    if options.billion:
        sections["windows"] = lambda: [repeated(1, name, 10**9, 8192, BILLION_WINDOW) for name in ("ffd", "bfd")]
    if options.peers:
        sections["peers"] = lambda: peers(options.rounds)
    if options.optimize:
        sections["optimize"] = lambda: [repeated(1, "bfd", 10**6, 2048, DEFAULT_WINDOW, optimize=True)]
    figures: dict[str, Any] = {}
    for name, section in sections.items():
        rows = figures[name] = section()
        save("plan", figures)
        print(f"\n{name}\n")
        header = list(dict.fromkeys(key for row in rows for key in row))
        table(header, [[row.get(key, "") for key in header] for row in rows])


if __name__ == "__main__":
    main()
