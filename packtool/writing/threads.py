"""Tasks on threads: NumPy, Arrow, xxhash and the kernel release the interpreter lock for the heavy parts of writing."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event
from typing import TypeAlias, TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")

Check: TypeAlias = Callable[[], None]
"""Called by a task every now and then; raises if the task is to be given up."""


@contextmanager
def in_threads(
    function: Callable[[Task, Check], Result], tasks: Iterable[Task], *, workers: int
) -> Iterator[Iterator[Result]]:
    """Results in the order of the tasks. After a failure or Ctrl-C no task begins, and those that run are given up.

    Args:
        function: of the task and a `Check`.

    >>> with in_threads(lambda task, check: abs(task), [-1, 2], workers=2) as results:
    ...     list(results)
    [1, 2]
    """
    stopped = Event()

    def check() -> None:
        if stopped.is_set():
            raise CancelledError

    with ThreadPoolExecutor(workers, thread_name_prefix="packtool") as pool:
        futures = deque(pool.submit(function, task, check) for task in tasks)
        try:
            yield (futures.popleft().result() for _ in range(len(futures)))
        except BaseException:
            stopped.set()
            pool.shutdown(wait=True, cancel_futures=True)
            raise
