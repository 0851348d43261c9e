"""Workers that share what one process has loaded: it loads once and forks them.

    caller ── spawned ── server ── forked ── workers
              loads, hands out tasks         share its memory until they write to it

Python has one thread in the server when it forks, and what it loads starts none (those of NumPy's BLAS end before a
fork), so no lock is held in a worker that nobody there can release. Each process watches a pipe whose other end is the
one above it, and ends when that is gone.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from packtool import executor

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

Task = TypeVar("Task")
Result = TypeVar("Result")


def run(
    function: Callable[[Task], Result],
    tasks: Sequence[Task],
    prepare: Callable[[], object],
    *,
    workers: int = 1,
    on_advance: executor.Advance | None = None,
) -> Iterator[tuple[int, Result]]:
    """As `executor.run`, with workers that share what `prepare` loads.

    Args:
        function, tasks, workers, on_advance: see there.
        prepare: picklable; loads, and keeps for `function`, what every task needs. It is called once, in the process
            that workers are forked from, and not at all where there is one worker or no safe way to fork.

    Raises:
        PacktoolError: what `prepare` or a task raised; `worker-died`.
    """
    workers = min(workers, len(tasks))
    if workers > 1 and sys.platform == "linux":  # system libraries of macOS do not take a fork
        return _run_forked(function, tasks, prepare, workers, on_advance)
    return executor.run(function, tasks, workers=workers, on_advance=on_advance)


def _run_forked(
    function: Callable[[Task], Result],
    tasks: Sequence[Task],
    prepare: Callable[[], object],
    workers: int,
    on_advance: executor.Advance | None,
) -> Iterator[tuple[int, Result]]:
    import multiprocessing
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()  # starting it lets signals through, and the server is to hold them back
    context = multiprocessing.get_context("spawn")
    lifeline, anchor = context.Pipe(duplex=False)
    results, sender = context.Pipe(duplex=False)
    with executor.listening(context, on_advance) as progress:
        server = context.Process(target=_serve, args=(lifeline, sender, progress, prepare, function, tasks, workers))
        try:
            with executor.starting():
                server.start()
            sender.close()
            while (message := _received(results)) is not None:
                number, outcome = message
                if isinstance(outcome, BaseException):
                    raise outcome
                if number < 0:
                    return
                yield number, outcome
            raise executor.worker_died()
        finally:
            if server.pid is not None:
                server.kill()
            sender.close()
            while _received(results) is not None:  # until the last worker is gone, which has the other end
                pass
            if server.pid is not None:
                server.join()
            for end in (lifeline, anchor, results):
                end.close()


def _received(results: Connection) -> tuple[int, Any] | None:
    with suppress(EOFError, OSError):
        message: tuple[int, Any] = results.recv()
        return message
    return None


def _serve(
    lifeline: Connection,
    sender: Connection,
    progress: Connection,
    prepare: Callable[[], object],
    function: Callable[[Task], Result],
    tasks: Sequence[Task],
    workers: int,
) -> None:
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    try:
        prepare()
        context = multiprocessing.get_context("fork")
        below, above = context.Pipe(duplex=False)
        pool = ProcessPoolExecutor(workers, context, initializer=_start_worker, initargs=(below, above, progress))
        pool.submit(os.getpid).result()  # forks all of them, before there is any other thread
        executor.watch(lifeline)
        for number, result in executor.submit(pool, function, tasks, 2 * workers):
            sender.send((number, result))
        pool.shutdown()
        sender.send((-1, None))
    except BrokenProcessPool:
        sender.send((-1, executor.worker_died()))
    except Exception as error:
        sender.send((-1, error))


def _start_worker(below: Connection, above: Connection, progress: Connection) -> None:
    above.close()
    # Errors of tasks come back as results; what else a worker has to say is that the server is gone.
    sys.stderr = open(os.devnull, "w")  # noqa: PTH123, SIM115
    executor.start_worker(below, progress)
