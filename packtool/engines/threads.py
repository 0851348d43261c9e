"""Run tasks on threads: NumPy, Arrow, xxhash and the kernel release the interpreter lock for the heavy parts."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from threading import Event, Semaphore

from packtool.engines.engine import Advance, Engine, Result, Task, Worker, submit
from packtool.engines.processes import Processes

CLOSING = 2
"""Tasks that may wait for a disk or a network while as many as there are workers compute."""


class Threads(Engine):
    """Threads of this process, which share its memory.

    >>> dict(Threads(2).run(lambda task, worker: abs(task), [-1, 2]))
    {0: 1, 1: 2}
    """

    def run(
        self,
        function: Callable[[Task, Worker], Result],
        tasks: Sequence[Task],
        *,
        on_advance: Advance | None = None,
        prepare: Callable[[], object] | None = None,
        shared: Path | None = None,
    ) -> Generator[tuple[int, Result], None, None]:
        from concurrent.futures import ThreadPoolExecutor

        stopped, computing = Event(), Semaphore(self.workers)

        def call(task: Task) -> Result:
            computing.acquire()
            held = [computing.release]

            def give_way() -> None:
                while held:
                    held.pop()()

            try:
                worker = Worker(on_advance, stopped, give_way)
                worker.advance(0)
                return function(task, worker)
            finally:
                give_way()

        at_once = self.workers + CLOSING
        with ThreadPoolExecutor(min(at_once, len(tasks) or 1), thread_name_prefix="packtool") as pool:
            try:
                yield from submit(pool, call, tasks, at_once)
            finally:
                stopped.set()
                pool.shutdown(wait=True, cancel_futures=True)

    @property
    def processes(self) -> Engine:
        return Processes(self.workers, self.share)

    @property
    def beside(self) -> Engine:
        return Threads(1)
