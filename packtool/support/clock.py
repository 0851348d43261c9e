"""Measure how long a run took, for `run.json` and the summary; output never depends on it."""

from __future__ import annotations

import resource
import time


class Clock:
    """Wall and CPU seconds since it was made; CPU of this process and of the workers that have ended."""

    def __init__(self) -> None:
        self._wall = time.perf_counter()
        self._cpu = _cpu_seconds()

    def seconds(self) -> dict[str, float]:
        """Return ``{"wall": …, "cpu": …}``, rounded to milliseconds."""
        return {"wall": round(time.perf_counter() - self._wall, 3), "cpu": round(_cpu_seconds() - self._cpu, 3)}


def _cpu_seconds() -> float:
    workers = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + workers.ru_utime + workers.ru_stime
