"""Time a run took, for `run.json` and the summary; never for anything the output depends on."""

from __future__ import annotations

import time


class Clock:
    """Wall and CPU seconds (of this process) since it was made."""

    def __init__(self) -> None:
        self._wall = time.perf_counter()
        self._cpu = time.process_time()

    def seconds(self) -> dict[str, float]:
        """``{"wall": …, "cpu": …}``, rounded to milliseconds."""
        return {
            "wall": round(time.perf_counter() - self._wall, 3),
            "cpu": round(time.process_time() - self._cpu, 3),
        }
