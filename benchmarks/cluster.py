"""Runs on a Dask cluster against runs on this machine: speed-up, memory of every process, and the same bytes.

    python -m benchmarks.cluster [--sizes 250,500,1000]

Scheduler and workers are processes of their own, one thread each, here on one machine; the corpus is that of
`benchmarks.corpus`. Wall time counts, so nothing else should run. For each size in MB of text: `tokenize`, `pack`,
and `pack` with so little memory that tokens move twice, with 1 and 2 local workers, then with 1 and 2 workers of the
cluster (and 4, for the bytes alone, below 200 MB).
"""

from __future__ import annotations

import argparse
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.common import WORK, fresh, packtool, save, table
from benchmarks.corpus import generated

OUT = WORK / "cluster"
PACK = ("--strategy", "bfd", "-L", "2048", "--shard-tokens", "8M")


@dataclass
class Cluster:
    """A scheduler and workers, and how much memory they took in the end."""

    address: str
    scheduler: subprocess.Popen[bytes]
    workers: list[subprocess.Popen[bytes]]

    def peaks(self) -> dict[str, float]:
        """Peak resident memory in MB."""
        return {"scheduler": _peak(self.scheduler.pid), "worker": max(_peak(each.pid) for each in self.workers)}


def _peak(process: int) -> float:
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))


@contextmanager
def cluster(workers: int) -> Iterator[Cluster]:
    """A new scheduler with so many workers of one thread each."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    python, quiet = [sys.executable, "-m"], {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    options = ["--nthreads", "1", "--no-dashboard", "--no-nanny"]
    scheduler = subprocess.Popen(
        [*python, "distributed.cli.dask_scheduler", "--host", address, "--no-dashboard"], **quiet
    )
    each = [*python, "distributed.cli.dask_worker", address, *options]
    started = [subprocess.Popen(each, **quiet) for _ in range(workers)]
    try:
        from distributed import Client

        with Client(address, timeout="30s") as client:
            client.wait_for_workers(workers)
        yield Cluster(address, scheduler, started)
    finally:
        for process in (*started, scheduler):
            process.kill()
            process.wait()


def timed(command: list[str]) -> dict[str, float]:
    """Wall seconds, CPU seconds and peak memory in MB of a command and its children."""
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"failed with {process.returncode}: {' '.join(command)}")
    seconds = time.perf_counter() - began
    return {"wall": seconds, "cpu": usage.ru_utime + usage.ru_stime, "peak_mb": usage.ru_maxrss / 1024}


def measure(megabytes: int, counts: tuple[int, ...]) -> dict[str, Any]:
    """Both commands on this machine and on clusters."""
    path, size = generated(megabytes)
    found: dict[str, Any] = {"text_bytes": size, "runs": []}
    store = OUT / f"store-{megabytes}"
    little = ("--memory", f"{max(16, megabytes // 4)}MiB", "--workers", "2")
    commands = {
        "tokenize": lambda out: packtool("tokenize", path, "-o", out, "-q"),
        "pack": lambda out: packtool("pack", store, "-o", out, "-q", *PACK),
        "two passes": lambda out: packtool("pack", store, "-o", out, "-q", *PACK, *little),
    }
    for name, command in commands.items():
        expected = store if name == "tokenize" else OUT / "expected"
        for where, count in [("local", 1), ("local", 2), *(("dask", count) for count in counts)]:
            out = expected if (where, count) == ("local", 1) else OUT / "out"
            shutil.rmtree(out, ignore_errors=True)
            if where == "local":
                figures: dict[str, Any] = timed([*command(out), "-j", str(count)])
            else:
                with cluster(count) as running:
                    figures = timed([*command(out), "--scheduler", running.address])
                    figures |= running.peaks()
            if (out / "manifest.json").read_bytes() != (expected / "manifest.json").read_bytes():
                raise SystemExit(f"{name} on {where} with {count} workers wrote other bytes")
            found["runs"].append({"command": name, "where": where, "workers": count, **figures})
            print(f"{megabytes} MB {name} {where} {count}: {figures['wall']:.2f} s", flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="250,500,1000", help="MB of text")
    sizes = [int(each) for each in parser.parse_args().sizes.split(",")]
    for size in sizes:
        generated(size)
    fresh(OUT)
    measured = [measure(size, (1, 2, 4) if size < 200 else (1, 2)) for size in sizes]
    save("cluster", {"sizes": measured})
    rows = []
    for each in measured:
        for run in each["runs"]:
            alone = next(
                other
                for other in each["runs"]
                if (other["command"], other["where"], other["workers"]) == (run["command"], run["where"], 1)
            )
            speed_up = f"{alone['wall'] / run['wall']:.2f}"
            memory = [round(run[name]) if name in run else "" for name in ("peak_mb", "scheduler", "worker")]
            size = round(each["text_bytes"] / 1e6)
            rows.append([size, run["command"], run["where"], run["workers"], run["wall"], speed_up, *memory])
    table(["MB", "command", "where", "workers", "seconds", "speed-up", "command MB", "scheduler MB", "worker MB"], rows)


if __name__ == "__main__":
    main()
