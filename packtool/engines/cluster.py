"""Run tasks on the workers of a Dask cluster.

Tasks and results are small; what they read and write lies where every worker sees it. A task whose worker dies runs
again on another one.
"""

from __future__ import annotations

import itertools
import logging
import os
import threading
import uuid
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from packtool.engines.engine import Advance, Engine, Result, Task, Worker, submit
from packtool.engines.local import WITHOUT_SCRIPT
from packtool.engines.sending import Saved, sent
from packtool.errors import DataError, PacktoolError, UsageError
from packtool.support import temporary
from packtool.support.installing import how_to_install
from packtool.support.version import __version__

if TYPE_CHECKING:
    from concurrent.futures import Future

    from distributed import Client

LOCAL = "local"
"""In place of an address: a scheduler and workers of this run's own, on this machine."""
PATIENCE = "30s"
"""Time to wait for a scheduler."""

_ONE_AT_A_TIME = threading.Lock()
"""Encoders are one for each process, whatever number of threads a worker has."""


class Cluster(Engine):
    """The workers of a cluster. It is connected to when tasks are first run, and left at the end of the block.

    Args:
        scheduler: its address, such as tcp://host:8786; a scheduler file; or `LOCAL`.
        workers: processes of a local cluster; others have as many as they have.
        label: names the tasks on the dashboard: label-ID-number.
        at_end: called on each worker at the end of the block.

    Raises:
        UsageError: `missing-extra`.
    """

    shares_memory = False
    shares_directories = False

    def __init__(self, scheduler: str, workers: int, label: str, at_end: Callable[[], object] | None = None) -> None:
        super().__init__(workers)
        _require_dask()
        self._scheduler = scheduler
        self._label = label
        self._at_end = at_end
        self._stack = ExitStack()
        self._connecting = threading.Lock()
        self._client: Client | None = None

    def run(
        self,
        function: Callable[[Task, Worker], Result],
        tasks: Sequence[Task],
        *,
        on_advance: Advance | None = None,
        prepare: Callable[[], object] | None = None,
        work: Path | None = None,
    ) -> Generator[tuple[int, Result], None, None]:
        if not tasks:
            return
        from concurrent.futures import CancelledError

        from distributed import KilledWorker
        from distributed.client import FutureCancelledError

        client = self._connected()
        with (
            sent(function, work) as call,
            _begins(client, self._label, partial(on_worker, call, __version__)) as begin,
        ):
            at_once = 2 * max(1, sum(client.nthreads().values()))
            try:
                for number, (result, done) in submit(begin, tasks, at_once):
                    if on_advance is not None:
                        on_advance(done)
                    yield number, result
            except KilledWorker as error:
                raise PacktoolError(
                    "worker-died",
                    f"several workers died with the same task ({error.task}), most likely because memory ran out",
                    remedy="give workers more memory; with --resume what is finished is kept",
                ) from None
            except (CancelledError, FutureCancelledError):
                raise PacktoolError(
                    "cluster-lost",
                    "the scheduler is gone, or gave the tasks up",
                    remedy="start it again, then give --resume: what is finished is kept",
                    where=self._scheduler,
                ) from None

    def _connected(self) -> Client:
        """Connect to the scheduler when it is first needed."""
        from distributed import Client

        with self._connecting:
            if self._client is None:
                address = self._stack.enter_context(started(self._scheduler, self.workers))
                where = {"scheduler_file": address} if Path(address).is_file() else {"address": address}
                try:
                    self._client = Client(**where, timeout=PATIENCE)
                except (OSError, ValueError, TimeoutError) as error:
                    raise PacktoolError(
                        "no-cluster",
                        f"no scheduler answers there ({str(error).splitlines()[0][:120]})",
                        remedy="check the address, and that the scheduler is running",
                        where=address,
                    ) from None
                # Its own block would have to end in the thread that began it.
                self._stack.callback(self._client.close)
            return self._client

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        lost = isinstance(error, PacktoolError) and error.code == "cluster-lost"
        if self._client is not None and self._at_end is not None and not lost:
            with suppress(Exception):  # whatever comes of it
                self._client.run(self._at_end, on_error="ignore")
        self._client = None
        self._stack.close()


def on_worker(function: Callable[[Task, Worker], Result], version: str, task: Task) -> tuple[Result, int]:
    """Run a task on a worker, after checking that the worker's version and directories match the command's.

    Args:
        function: of a task; perhaps in a file, which the worker must see.
        version: of the command's packtool.

    Returns:
        The task's result, and the progress it reported through `Worker.advance`.
    """
    from distributed import get_worker

    here = f"the worker on {os.uname().nodename}"
    if version != __version__:
        what = f"{here} has packtool {__version__}, but the command is packtool {version}"
        raise DataError("worker-differs", what, remedy="install the same version everywhere")
    if isinstance(function, Saved) and not function.file.exists():
        remedy = "choose an output on a file system that all workers share"
        raise DataError("not-shared", f"{here} doesn't see it", remedy=remedy, where=str(function.file))
    with suppress(ValueError):  # called by no worker
        temporary.make_in(Path(get_worker().local_directory))
    done: list[int] = []
    with _ONE_AT_A_TIME:
        return function(task, Worker(done.append)), sum(done)


@contextmanager
def started(scheduler: str, workers: int) -> Iterator[str]:
    """Yield the address of a scheduler; with `LOCAL`, start one that runs as long as the block."""
    for name in ("distributed", "distributed.client", "distributed.comm", "tornado", "tornado.application", "asyncio"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # what matters of it is raised
    if scheduler != LOCAL:
        yield scheduler
        return
    _require_dask()
    from distributed import LocalCluster

    with (
        WITHOUT_SCRIPT,  # also where a worker that died is started again
        LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=":0") as cluster,
    ):
        yield cluster.scheduler_address


@contextmanager
def _begins(
    client: Client, label: str, function: Callable[[Task], Result]
) -> Iterator[Callable[[Task], Future[Result]]]:
    """Yield what begins a task, under a key that names it; cancel those that still run when the block ends."""
    executor = client.get_executor(pure=False, retries=2)
    run, numbers = f"{label}-{uuid.uuid4().hex[:8]}", itertools.count()

    def begin(task: Task) -> Future[Result]:
        future: Future[Result] = executor.submit(function, task, key=f"{run}-{next(numbers):06d}")
        return future

    try:
        yield begin
    finally:
        with suppress(Exception):  # the scheduler may be what is gone
            executor.shutdown(wait=False)


def _require_dask() -> None:
    if find_spec("distributed") is None:
        remedy = f"install it: {how_to_install('distributed')}"
        raise UsageError("missing-extra", "Dask is not installed", remedy=remedy, where="--scheduler")
