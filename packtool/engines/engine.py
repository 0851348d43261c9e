"""The interface of all engines: how a function is called with its tasks, and in which order errors are raised."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Event
from typing import TYPE_CHECKING, ClassVar, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Future

Task = TypeVar("Task")
Result = TypeVar("Result")
Advance = Callable[[int], object]


class Worker:
    """The runner of a task, as the task sees it.

    Args:
        on_advance: called with the amount of work done since the last call.
        stopped: set to cancel the task.
        give_way: called by the task when what is left of it waits for a disk or a network.
    """

    def __init__(
        self,
        on_advance: Advance | None = None,
        stopped: Event | None = None,
        give_way: Callable[[], object] | None = None,
    ) -> None:
        self._on_advance = on_advance
        self._stopped = stopped
        self._give_way = give_way

    def advance(self, amount: int) -> None:
        """Report progress; raise a CancelledError where the task was cancelled."""
        if self._stopped is not None and self._stopped.is_set():
            raise CancelledError
        if self._on_advance is not None and amount:
            self._on_advance(amount)

    def give_way(self) -> None:
        """Let another task begin: the rest of this one waits on I/O and needs no processor."""
        if self._give_way is not None:
            self._give_way()


TaskFunction = Callable[[Task, Worker], Result]


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """What a run of tasks has beside its function.

    Attributes:
        on_advance: called with what tasks report through `Worker.advance`.
        prepare: loads, and keeps for the function, what every task needs. Processes that are forked share it.
        work: a directory that every worker sees: where memory is not shared, the function lies there, and its arrays
            are mapped. None to send it with every task.
    """

    on_advance: Advance | None = None
    prepare: Callable[[], object] | None = None
    work: Path | None = None


NO_OPTIONS = RunOptions()


class Engine(ABC):
    """Runs a function over tasks. The results do not depend on which engine it is.

    Attributes:
        workers: tasks that run at the same time.
        shares_memory: tasks see the memory of this process; if not, what a function needs is sent to them.
        shares_directories: tasks see the directories of this machine; if not, perhaps some of them.
    """

    shares_memory: ClassVar[bool] = True
    shares_directories: ClassVar[bool] = True

    def __init__(self, workers: int) -> None:
        self.workers = workers

    @abstractmethod
    def run(
        self, function: TaskFunction[Task, Result], tasks: Sequence[Task], options: RunOptions = NO_OPTIONS
    ) -> Generator[tuple[int, Result], None, None]:
        """Run `function` on every task and yield (number of the task, result) as they finish.

        Tasks start in order. When a task fails, the tasks before it still finish; then the error of the first failed
        task in order is raised: the same error for any number of workers. Close the generator (or let an exception do
        so) to cancel all tasks.

        Args:
            function: of a task and the worker that runs it; picklable where memory is not shared, as are tasks and
                results.
            tasks: what to run it on.

        Raises:
            PacktoolError: `worker-died`; `no-cluster`, `cluster-lost`, `worker-differs`, `not-shared` on a cluster;
                whatever a task raised.
        """

    @property
    def processes(self) -> Engine:
        """An engine of as many workers for functions that hold Python's interpreter lock."""
        return self

    @property
    def background(self) -> Engine:
        """An engine for work in the background: one thread, where this machine does it."""
        return self

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:  # noqa: B027 - most engines hold nothing
        """Release the threads or processes of `run`."""


def submit(
    begin: Callable[[Task], Future[Result]], tasks: Iterable[Task], at_once: Callable[[], int]
) -> Iterator[tuple[int, Result]]:
    """Begin tasks in a pool, a limited number at a time; yield (number, result) as they finish. See `Engine.run`.

    Args:
        begin: begins a task.
        tasks: in order.
        at_once: returns how many tasks may run now, one at least. It is asked again every second while tasks run, for
            pools that grow and shrink; what it raises ends the waiting.
    """
    running: dict[Future[Result], int] = {}
    failed: dict[int, BaseException] = {}
    finished: SimpleQueue[Future[Result]] = SimpleQueue()
    waiting = iter(enumerate(tasks))
    while True:
        room = at_once() - len(running)
        if not failed:
            for number, task in islice(waiting, max(0, room)):
                future = begin(task)
                running[future] = number
                future.add_done_callback(finished.put)
        elif all(number > min(failed) for number in running.values()):
            raise failed[min(failed)]
        if not running:
            return
        done = _finished(finished)
        for future in sorted(done, key=running.__getitem__):
            number = running.pop(future)
            error = future.exception()
            if error is not None:
                failed[number] = error
            else:
                yield number, future.result()


def _finished(finished: SimpleQueue[Future[Result]]) -> list[Future[Result]]:
    """Wait up to a second for tasks to finish; return the finished ones."""
    try:
        done = [finished.get(timeout=1)]
    except Empty:
        return []
    while not finished.empty():
        done.append(finished.get())
    return done
