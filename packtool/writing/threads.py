"""Tasks on threads: NumPy, Arrow, xxhash and the kernel release the interpreter lock for the heavy parts of writing."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")


def in_threads(function: Callable[[Task], Result], tasks: Iterable[Task], *, workers: int) -> Iterator[Result]:
    """Results in the order of the tasks. After a failure no other task begins.

    >>> list(in_threads(abs, [-1, 2], workers=2))
    [1, 2]
    """
    with ThreadPoolExecutor(workers, thread_name_prefix="packtool") as pool:
        futures = deque(pool.submit(function, task) for task in tasks)
        try:
            while futures:
                yield futures.popleft().result()
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise
