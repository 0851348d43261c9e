"""Run tasks on this machine: on threads, or on processes for what holds Python's interpreter lock.

Threads suit NumPy, Arrow, xxhash and the kernel, which release the lock for the heavy parts. One worker of `Processes`
is the caller's own process; several are a pool of others. Where every task needs what takes long to load, one process
loads it and forks the workers:

    caller ── spawned ── server ── forked ── workers
              loads, hands out tasks         share its memory until they write to it

The server has a single thread of Python when it forks, and the libraries that it loads start no further threads (the
threads of NumPy's BLAS end before a fork). So no worker inherits a lock that no thread there can release. Every process
watches a pipe to the process above it, and ends when that is gone.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import Event, Semaphore
from types import ModuleType
from typing import TYPE_CHECKING, Any

from packtool.engines.engine import NO_OPTIONS, Advance, Engine, Result, RunOptions, Task, TaskFunction, Worker, submit
from packtool.engines.sending import sent
from packtool.errors import PacktoolError

if TYPE_CHECKING:
    from concurrent.futures import Future, ProcessPoolExecutor
    from multiprocessing.connection import Connection
    from multiprocessing.context import SpawnContext

CLOSING = 2
"""Tasks that may wait for a disk or a network while as many as there are workers compute."""


class Threads(Engine):
    """Threads of this process, which share its memory.

    >>> dict(Threads(2).run(lambda task, worker: abs(task), [-1, 2]))
    {0: 1, 1: 2}
    """

    def run(
        self, function: TaskFunction[Task, Result], tasks: Sequence[Task], options: RunOptions = NO_OPTIONS
    ) -> Generator[tuple[int, Result], None, None]:
        from concurrent.futures import ThreadPoolExecutor

        stopped = Event()
        at_once = self.workers + CLOSING  # threads, of which only as many as there are workers compute
        computing = Semaphore(self.workers)

        def call(task: Task) -> Result:
            computing.acquire()
            computes = True

            def give_way() -> None:
                """Let another task compute; only once, since a task may have given way before it ends."""
                nonlocal computes
                if computes:
                    computes = False
                    computing.release()

            try:
                worker = Worker(options.on_advance, stopped, give_way)
                worker.advance(0)  # raises an error if the run was stopped while the task waited
                return function(task, worker)
            finally:
                give_way()

        with ThreadPoolExecutor(min(at_once, len(tasks) or 1), thread_name_prefix="packtool") as pool:
            try:
                yield from submit(lambda task: pool.submit(call, task), tasks, lambda: at_once)
            finally:
                stopped.set()
                pool.shutdown(wait=True, cancel_futures=True)

    @property
    def processes(self) -> Engine:
        return Processes(self.workers)

    @property
    def background(self) -> Engine:
        return Threads(1)


class Processes(Engine):
    """Processes of this machine, for what holds the interpreter lock."""

    shares_memory = False

    def run(
        self, function: TaskFunction[Task, Result], tasks: Sequence[Task], options: RunOptions = NO_OPTIONS
    ) -> Generator[tuple[int, Result], None, None]:
        workers = min(self.workers, len(tasks))
        if workers <= 1:
            worker = Worker(options.on_advance)
            yield from ((number, function(task, worker)) for number, task in enumerate(tasks))
            return
        with sent(function, options.work) as call:
            if options.prepare is not None and sys.platform == "linux":  # system libraries of macOS do not take a fork
                yield from _forked(call, tasks, options.prepare, workers, options.on_advance)
            else:
                yield from _spawned(call, tasks, workers, options.on_advance)


def _spawned(
    function: TaskFunction[Task, Result], tasks: Sequence[Task], workers: int, on_advance: Advance | None
) -> Iterator[tuple[int, Result]]:
    import multiprocessing  # these cost more than a small run
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    context = multiprocessing.get_context("spawn")
    lifeline, anchor = context.Pipe(duplex=False)
    with _listening(context, on_advance) as progress:
        pool = ProcessPoolExecutor(workers, context, initializer=_start_worker, initargs=(lifeline, progress))
        try:
            yield from submit(_begins(pool, function), tasks, lambda: 2 * workers)
            pool.shutdown()
        except BrokenProcessPool:
            raise _worker_died() from None
        finally:
            anchor.close()  # after an error or Ctrl-C, workers that are still busy end here
            pool.shutdown(cancel_futures=True)
            lifeline.close()


def _forked(
    function: TaskFunction[Task, Result],
    tasks: Sequence[Task],
    prepare: Callable[[], object],
    workers: int,
    on_advance: Advance | None,
) -> Iterator[tuple[int, Result]]:
    import multiprocessing
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()  # starting it lets signals through, and the server is to hold them back
    context = multiprocessing.get_context("spawn")
    lifeline, anchor = context.Pipe(duplex=False)
    results, sender = context.Pipe(duplex=False)
    with _listening(context, on_advance) as progress:
        server = context.Process(target=_serve, args=(lifeline, sender, progress, prepare, function, tasks, workers))
        try:
            with _starting():
                server.start()
            sender.close()
            while (message := _received(results)) is not None:
                number, outcome = message
                if isinstance(outcome, BaseException):
                    raise outcome
                if number < 0:
                    return
                yield number, outcome
            raise _worker_died()
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
    function: TaskFunction[Task, Result],
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
        pool = ProcessPoolExecutor(workers, context, initializer=_start_forked, initargs=(below, above, progress))
        pool.submit(os.getpid).result()  # forks all of them, before there is any other thread
        _watch(lifeline)
        for number, result in submit(_begins(pool, function), tasks, lambda: 2 * workers):
            sender.send((number, result))
        pool.shutdown()
        sender.send((-1, None))
    except BrokenProcessPool:
        sender.send((-1, _worker_died()))
    except Exception as error:
        sender.send((-1, error))


def _worker_died() -> PacktoolError:
    """Return the error for a process that was killed from outside."""
    what = "a worker process ended abruptly, most likely killed because memory ran out"
    remedy = "try fewer --workers; with --resume=True what is finished is kept"
    return PacktoolError("worker-died", what, remedy=remedy)


def _begins(pool: ProcessPoolExecutor, function: TaskFunction[Task, Result]) -> Callable[[Task], Future[Result]]:
    """Return the function that begins a task in a pool, which may start a process for it."""

    def begin(task: Task) -> Future[Result]:
        with _starting():
            return pool.submit(_call, function, task)

    return begin


@contextmanager
def _starting() -> Iterator[None]:
    """Start a process in the block with the signals that interrupt blocked, so that it never gets them, not even while
    it imports."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
    try:
        with WITHOUT_SCRIPT:
            yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _WithoutScript:
    """Hides the caller's script from processes that are started in the block, so that they don't run it again.

    A process that Python spawns imports the script of its parent, which would otherwise have to be guarded by
    ``if __name__ == "__main__"``. Several threads may hide it at the same time: the last of them puts it back.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._blocks = 0
        self._script = sys.modules["__main__"]

    def __enter__(self) -> None:
        with self._lock:
            if not self._blocks:
                self._script, sys.modules["__main__"] = sys.modules["__main__"], ModuleType("__main__")
            self._blocks += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._blocks -= 1
            if not self._blocks:
                sys.modules["__main__"] = self._script


WITHOUT_SCRIPT = _WithoutScript()


@contextmanager
def _listening(context: SpawnContext, on_advance: Advance | None) -> Iterator[Connection]:
    """Yield the end of a pipe to which workers report progress; a thread listens at the other end."""
    receiver, sender = context.Pipe(duplex=False)

    def listen() -> None:
        # Ends when the last writer is gone. Messages are far below PIPE_BUF, so writers need no lock that a killed
        # worker could keep.
        with suppress(EOFError, OSError):
            while True:
                amount = int.from_bytes(receiver.recv_bytes(), "little")
                if on_advance is not None:
                    on_advance(amount)

    listener = threading.Thread(target=listen, daemon=True)
    listener.start()
    try:
        yield sender
    finally:
        sender.close()
        listener.join()
        receiver.close()


_this_worker: list[Worker] = []
"""In a process of a pool: what its tasks see of it, since what starts it can't hand it to them."""


def _start_worker(lifeline: Connection, progress: Connection) -> None:
    """Set up a worker: leave interrupts to the parent, and exit when the parent closes the lifeline or dies."""

    def report(amount: int) -> None:
        with suppress(OSError):
            progress.send_bytes(amount.to_bytes(8, "little"))

    _this_worker[:] = [Worker(report)]
    _watch(lifeline)


def _start_forked(below: Connection, above: Connection, progress: Connection) -> None:
    above.close()
    # Errors of tasks come back as results; what else a worker has to say is that the server is gone.
    sys.stderr = open(os.devnull, "w")  # noqa: PTH123, SIM115
    _start_worker(below, progress)


def _call(function: TaskFunction[Task, Result], task: Task) -> Result:
    return function(task, _this_worker[0])


def _watch(lifeline: Connection) -> None:
    """End this process when nobody holds the other end of a pipe any more."""

    def wait() -> None:
        try:
            lifeline.poll(None)
        finally:
            os._exit(1)

    threading.Thread(target=wait, daemon=True).start()
