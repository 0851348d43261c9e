"""What a corpus takes on many machines: a model of measured figures, and a simulation of the scheduler.

    python -m benchmarks.scaling [--overhead]

The model takes rates from what `benchmarks.cluster` measured on its largest size, and is held against all sizes. The
simulation hands tasks to workers one by one, as a scheduler does: each task costs the scheduler a fixed time, which
`--overhead` measures anew with empty tasks on a real scheduler, and a worker a time drawn from those of real tasks. So
it shows from how many workers on the scheduler is what one waits for.
"""

from __future__ import annotations

import argparse
import heapq
import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.common import RESULTS, save, table

TOKENS = 15e12
BYTES_PER_TOKEN = 4.4
TOKENS_PER_DOCUMENT = 1000
CORES = 32
MACHINES = (1, 32, 256)
BLOCK_BYTES = 1 << 26
SHARD_TOKENS = 1 << 28
ID_BYTES = 4
NETWORK = 2e9
"""Bytes a second between a machine and its files, in and out together: an assumption, not measured here."""
MOVED = {"tokenize": BYTES_PER_TOKEN + ID_BYTES, "pack": 3 * ID_BYTES, "two passes": 5 * ID_BYTES}
"""Bytes read and written for each token: text and ids; ids hashed, read and written, once or twice."""
PLAN_BYTES = 20
"""Of memory for each document that is planned, at most, as `benchmarks.plan` measures it."""


def simulate(durations: npt.NDArray[np.float64], workers: int, overhead: float) -> float:
    """Seconds until all tasks are done, in order, where each costs the scheduler `overhead` before it can begin.

    >>> simulate(np.array([2.0, 2.0, 2.0]), workers=2, overhead=0.0)
    4.0
    >>> simulate(np.array([1.0, 1.0, 1.0]), workers=3, overhead=1.0)
    4.0
    """
    free = [0.0] * min(workers, len(durations))
    heapq.heapify(free)
    scheduler = end = 0.0
    for duration in durations.tolist():
        scheduler += overhead
        begin = max(heapq.heappop(free), scheduler)
        heapq.heappush(free, begin + duration)
        end = max(end, begin + duration)
    return end


def nothing(task: int, worker: object) -> int:
    return task


def overhead(tasks: int = 2000) -> dict[str, float]:
    """CPU seconds that a task costs scheduler and command, measured with empty tasks on two workers.

    They are processes of their own, so the larger of the two is how long a task takes them at least.
    """
    from benchmarks.cluster import cluster
    from packtool.engines import Cluster

    with cluster(2) as running, Cluster(running.address, 2, "empty") as engine:
        list(engine.run(nothing, range(100)))
        before = time.process_time(), _cpu(running.scheduler.pid)
        list(engine.run(nothing, range(tasks)))
        command = (time.process_time() - before[0]) / tasks
        scheduler = (_cpu(running.scheduler.pid) - before[1]) / tasks
        peaks = {f"{name}_mb": peak for name, peak in running.peaks().items()}
    return {"seconds": max(command, scheduler), "command": command, "scheduler": scheduler, "tasks": tasks, **peaks}


def _cpu(process: int) -> float:
    """CPU seconds that another process has taken."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def rates(measured: dict[str, Any]) -> dict[str, Any]:
    """Of one size, with two workers of a cluster: seconds of all tasks, those of each, and of the whole run."""
    found = {}
    for command in MOVED:
        run = next(
            each
            for each in measured["runs"]
            if (each["command"], each["where"], each["workers"]) == (command, "dask", 2)
        )
        found[command] = {"seconds": sum(run["tasks"]), "tasks": run["tasks"], "wall": run["wall"]}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--overhead", action="store_true", help="measure what a task costs the scheduler anew")
    record = RESULTS / "scaling.json"
    if parser.parse_args().overhead or not record.exists():
        cost = overhead()
    else:
        cost = json.loads(record.read_bytes())["overhead"]
    sizes = json.loads((RESULTS / "cluster.json").read_bytes())["sizes"]
    largest = sizes[-1]
    base = {command: rates(largest)[command] for command in MOVED}
    per_byte = {command: base[command]["seconds"] / largest["text_bytes"] for command in base}
    start_up = {
        command: rates(largest)[command]["wall"] - simulate(np.array(base[command]["tasks"]), 2, cost["seconds"])
        for command in base
    }

    print("Against runs here (two workers):\n")
    checked = []
    for each in sizes:
        for command in base:
            found = rates(each)[command]
            predicted = start_up[command] + per_byte[command] * each["text_bytes"] / 2
            simulated = start_up[command] + simulate(np.array(found["tasks"]), 2, cost["seconds"])
            checked.append([round(each["text_bytes"] / 1e6), command, found["wall"], predicted, simulated])
    table(["MB", "command", "seconds", "model", "simulated"], checked)

    text = TOKENS * BYTES_PER_TOKEN
    rng = np.random.default_rng(0)
    model = []
    shards = int(TOKENS / SHARD_TOKENS)
    for command, tasks in (("tokenize", int(text / BLOCK_BYTES)), ("pack", shards), ("two passes", 2 * shards)):
        seconds = per_byte[command] * text
        drawn = rng.choice(np.array(base[command]["tasks"]), tasks)
        drawn *= seconds / drawn.sum()
        for machines in MACHINES:
            workers = machines * CORES
            model.append(
                {
                    "command": command,
                    "machines": machines,
                    "tasks": tasks,
                    "task_seconds": seconds / tasks,
                    "data_hours": TOKENS * MOVED[command] / NETWORK / machines / 3600,
                    "hours": seconds / workers / 3600,
                    "simulated_hours": simulate(drawn, workers, cost["seconds"]) / 3600,
                }
            )
    print(
        f"\n{TOKENS:.3g} tokens, {text / 1e12:.3g} TB of text, {CORES} cores a machine, a task costs "
        f"{cost['seconds'] * 1e3:.2g} ms:\n"
    )
    table(
        ["command", "machines", "tasks", "seconds a task", "hours, data", "hours, cores", "one scheduler"],
        [list(each.values()) for each in model],
    )
    documents = TOKENS / TOKENS_PER_DOCUMENT
    sizes_of = {
        "text_tb": text / 1e12,
        "store_tb": TOKENS * ID_BYTES / 1e12,
        "rows_tb": TOKENS * ID_BYTES / 1e12,
        "documents": documents,
        "plan_gb": documents * PLAN_BYTES / 1e9,
    }
    print(
        f"\nstore {sizes_of['store_tb']:.0f} TB, rows {sizes_of['rows_tb']:.0f} TB, "
        f"{documents:.3g} documents, planned at once in {sizes_of['plan_gb']:.0f} GB"
    )
    save("scaling", {"overhead": cost, "checked": checked, "model": model, "sizes": sizes_of})


if __name__ == "__main__":
    main()
