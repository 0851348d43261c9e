"""One way to run a list of tasks: in this process for one worker, else on a `ProcessPoolExecutor`.

Where workers need what takes long to load, see forked.py.

Tasks must be idempotent: a task writes to temporary names and renames at its end, so running it twice does no harm.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import islice
from queue import SimpleQueue
from types import ModuleType
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from packtool.errors import PacktoolError

if TYPE_CHECKING:
    from concurrent.futures import Future
    from multiprocessing.connection import Connection
    from multiprocessing.context import SpawnContext

Task = TypeVar("Task")
Result = TypeVar("Result")
Advance = Callable[[int], object]

_advance: Advance | None = None
_script: ModuleType | None = None
_hidden: list[int] = []  # one item for each thread that starts processes now
_hiding = threading.Lock()


class Pool(Protocol):
    """What runs tasks elsewhere: an executor of `concurrent.futures`, or of a cluster."""

    def submit(self, function: Callable[[Any], Any], task: Any, /) -> Future[Any]:
        """Begin a task."""


def available_cpus() -> int:
    """Processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def advance(amount: int) -> None:
    """Called inside a task: report progress to whoever called `run`."""
    if _advance is not None and amount:
        _advance(amount)


def run(
    function: Callable[[Task], Result],
    tasks: Sequence[Task],
    *,
    workers: int = 1,
    on_advance: Advance | None = None,
) -> Iterator[tuple[int, Result]]:
    """Run `function` on every task and yield (task number, result) as they finish.

    Tasks start in order. When one fails, those before it still finish, and the error of the first one in order is
    raised: the same error for any number of workers. Close the iterator (or leave it to an exception) to stop all
    workers at once.

    Args:
        function: picklable; so are tasks and results.
        tasks: what to run it on.
        workers: processes. With 1 everything runs in this process.
        on_advance: receives what tasks report through `advance`.

    Raises:
        PacktoolError: `worker-died` when a worker was killed; whatever a task raised.
    """
    workers = min(workers, len(tasks))
    if workers <= 1:
        return _run_here(function, tasks, on_advance)
    return _run_pool(function, tasks, workers, on_advance)


def _run_here(
    function: Callable[[Task], Result], tasks: Sequence[Task], on_advance: Advance | None
) -> Iterator[tuple[int, Result]]:
    global _advance  # noqa: PLW0603 - one per process: tasks of one run never interleave with another's
    before = _advance
    try:
        for number, task in enumerate(tasks):
            _advance = on_advance
            result = function(task)
            _advance = before
            yield number, result
    finally:
        _advance = before


def _run_pool(
    function: Callable[[Task], Result], tasks: Sequence[Task], workers: int, on_advance: Advance | None
) -> Iterator[tuple[int, Result]]:
    import multiprocessing  # these cost more than a small run
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    context = multiprocessing.get_context("spawn")
    lifeline, anchor = context.Pipe(duplex=False)
    with listening(context, on_advance) as progress:
        pool = ProcessPoolExecutor(workers, context, initializer=start_worker, initargs=(lifeline, progress))
        try:
            yield from submit(pool, function, tasks, 2 * workers)
            pool.shutdown()
        except BrokenProcessPool:
            raise worker_died() from None
        finally:
            anchor.close()  # after an error or Ctrl-C, workers that are still busy end here
            pool.shutdown(cancel_futures=True)
            lifeline.close()


def worker_died() -> PacktoolError:
    """The error for a process that somebody killed."""
    return PacktoolError(
        "worker-died",
        "a worker process ended abruptly, most likely killed because memory ran out",
        remedy="try fewer --workers; with --resume what is finished is kept",
    )


def submit(
    pool: Pool, function: Callable[[Task], Result], tasks: Sequence[Task], at_once: int
) -> Iterator[tuple[int, Result]]:
    """Hand tasks to a pool, so many at once, and yield (task number, result) as they finish; see `run`."""
    running: dict[Future[Result], int] = {}
    failed: dict[int, BaseException] = {}
    finished: SimpleQueue[Future[Result]] = SimpleQueue()
    waiting = iter(enumerate(tasks))
    while True:
        if not failed:
            for number, task in islice(waiting, at_once - len(running)):
                with starting():
                    future = pool.submit(function, task)
                running[future] = number
                future.add_done_callback(finished.put)
        elif all(number > min(failed) for number in running.values()):
            raise failed[min(failed)]
        if not running:
            return
        done = [finished.get()]
        while not finished.empty():
            done.append(finished.get())
        for future in sorted(done, key=running.__getitem__):
            number = running.pop(future)
            error = future.exception()
            if error is not None:
                failed[number] = error
            elif not failed:
                yield number, future.result()


@contextmanager
def starting() -> Iterator[None]:
    """Around the start of a process, which then never gets Ctrl-C or SIGTERM, not even while it imports."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        with without_script():
            yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def without_script() -> Iterator[None]:
    """Processes that are started meanwhile do not import the caller's script, as spawned ones do.

    What they run is packtool's own. A script would otherwise have to be guarded by ``if __name__ == "__main__"``, or
    would begin anew in each of them.
    """
    global _script
    with _hiding:
        if not _hidden:
            _script, sys.modules["__main__"] = sys.modules["__main__"], ModuleType("__main__")
        _hidden.append(1)
    try:
        yield
    finally:
        with _hiding:
            _hidden.pop()
            if not _hidden and _script is not None:
                sys.modules["__main__"] = _script


@contextmanager
def listening(context: SpawnContext, on_advance: Advance | None) -> Iterator[Connection]:
    """The end of a pipe on which workers send how far they are, while a thread listens at the other."""
    receiver, sender = context.Pipe(duplex=False)
    listener = threading.Thread(target=_listen, args=(receiver, on_advance), daemon=True)
    listener.start()
    try:
        yield sender
    finally:
        sender.close()
        listener.join()
        receiver.close()


def _listen(receiver: Connection, on_advance: Advance | None) -> None:
    # Ends when the last writer is gone. Messages are far below PIPE_BUF, so writers need no lock that a killed worker
    # could keep.
    with suppress(EOFError, OSError):
        while True:
            amount = int.from_bytes(receiver.recv_bytes(), "little")
            if on_advance is not None:
                on_advance(amount)


def start_worker(lifeline: Connection, progress: Connection) -> None:
    """Ctrl-C and SIGTERM are the parent's business; a worker ends when the parent lets go of the lifeline or dies."""
    global _advance  # noqa: PLW0603
    _advance = partial(_send, progress)
    watch(lifeline)


def watch(lifeline: Connection) -> None:
    """End this process when nobody holds the other end of a pipe any more."""

    def wait() -> None:
        try:
            lifeline.poll(None)
        finally:
            os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def _send(sender: Connection, amount: int) -> None:
    with suppress(OSError):
        sender.send_bytes(amount.to_bytes(8, "little"))
