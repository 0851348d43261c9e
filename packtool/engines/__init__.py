"""Run tasks: on threads or processes of this machine, or on the workers of a Dask cluster.

Whoever has work to do cuts it into numbered tasks and hands them to an engine, without knowing which one it is. An
engine is made once, from the options of a command, and is passed on; a cluster is connected to when it is first needed,
and let go when the engine's block ends.

Tasks must be idempotent: a task writes to temporary names and renames at its end, so running it twice does no harm.
What a function needs goes with it by pickling, where it does not stay in this process: with every task, or in a file
that every worker sees (`sending.py`).
"""

from __future__ import annotations

import os
from collections.abc import Callable

from packtool.engines.cluster import Cluster
from packtool.engines.engine import Engine, RunOptions, Worker
from packtool.engines.local import Processes, Threads

__all__ = ["Cluster", "Engine", "Processes", "RunOptions", "Threads", "Worker", "available_cpus", "engine_for"]


def available_cpus() -> int:
    """Return how many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def engine_for(
    scheduler: str | None, workers: int | None, label: str, at_end: Callable[[], object] | None = None
) -> Engine:
    """Return the engine that a command's options ask for.

    Args:
        scheduler: of a cluster; None for threads of this process.
        workers: how many; None for as many as there are processors.
        label: names the tasks of a cluster on its dashboard.
        at_end: called on each worker of a cluster when the command is done.

    Raises:
        UsageError: `missing-extra`: a cluster is given, and Dask is not installed.
    """
    count = workers or available_cpus()
    return Threads(count) if scheduler is None else Cluster(scheduler, count, label, at_end)
