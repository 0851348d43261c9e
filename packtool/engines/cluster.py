"""Run tasks on the workers of a Dask cluster.

Tasks and results are small; what they read and write lies where every worker sees it. A task whose worker dies runs
again on another one.
"""

from __future__ import annotations

import logging
import os
import threading
import uuid
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic

from packtool import __version__, temporary
from packtool.engines.engine import Advance, Engine, Result, Task, Worker, submit
from packtool.engines.script import without_script
from packtool.errors import DataError, PacktoolError, UsageError
from packtool.installing import how_to_install

if TYPE_CHECKING:
    from concurrent.futures import Future

    from distributed import Client

LOCAL = "local"
"""In place of an address: a scheduler and workers of this run's own, on this machine."""
PATIENCE = "30s"
"""How long to wait for a scheduler."""

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
        shared: Path | None = None,
    ) -> Generator[tuple[int, Result], None, None]:
        if not tasks:
            return
        from concurrent.futures import CancelledError

        from distributed import KilledWorker
        from distributed.client import FutureCancelledError

        client = self._connected()
        with _named(client, self._label) as pool:
            at_once = 2 * max(1, sum(client.nthreads().values()))
            try:
                for number, (result, done) in submit(pool, OnWorker(function, shared), tasks, at_once):
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
        with self._connecting:
            if self._client is None:
                address = self._stack.enter_context(started(self._scheduler, self.workers))
                self._client = self._stack.enter_context(_client(address))
            return self._client

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        lost = isinstance(error, PacktoolError) and error.code == "cluster-lost"
        if self._client is not None and self._at_end is not None and not lost:
            with suppress(Exception):  # whatever comes of it
                self._client.run(self._at_end, on_error="ignore")
        self._client = None
        self._stack.close()


class OnWorker(Generic[Task, Result]):
    """A task's function on a worker, with checks that the worker's version and directories match the command's.

    Args:
        function: of a task.
        shared: a file that every worker must see; None where they share no directory.
    """

    def __init__(self, function: Callable[[Task, Worker], Result], shared: Path | None) -> None:
        self._function = function
        self._shared = shared
        self._version = __version__

    def __call__(self, task: Task) -> tuple[Result, int]:
        """Run the task; return its result, and the progress it reported through `Worker.advance`."""
        from distributed import get_worker

        here = f"the worker on {os.uname().nodename}"
        if self._version != __version__:
            what = f"{here} has packtool {__version__}, but the command is packtool {self._version}"
            raise DataError("worker-differs", what, remedy="install the same version everywhere")
        if self._shared is not None and not self._shared.exists():
            remedy = "choose an output on a file system that all workers share"
            raise DataError("not-shared", f"{here} doesn't see it", remedy=remedy, where=str(self._shared))
        with suppress(ValueError):  # called by no worker
            temporary.make_in(Path(get_worker().local_directory))
        done: list[int] = []
        with _ONE_AT_A_TIME:
            return self._function(task, Worker(done.append)), sum(done)


@contextmanager
def started(scheduler: str, workers: int) -> Iterator[str]:
    """Yield the address of a scheduler; with `LOCAL`, start one that runs as long as the block.

    Raises:
        UsageError: `missing-extra`.
    """
    if scheduler != LOCAL:
        yield scheduler
        return
    _require_dask()
    from distributed import LocalCluster

    _quieten()
    with (
        without_script(),  # also where a worker that died is started again
        LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=":0") as cluster,
    ):
        yield cluster.scheduler_address


@contextmanager
def _client(scheduler: str) -> Iterator[Client]:
    """Connect a client to a scheduler for the block.

    Raises:
        PacktoolError: `no-cluster`.
    """
    from distributed import Client

    _quieten()
    where = {"scheduler_file": scheduler} if Path(scheduler).is_file() else {"address": scheduler}
    try:
        client = Client(**where, timeout=PATIENCE)
    except (OSError, ValueError, TimeoutError) as error:
        raise PacktoolError(
            "no-cluster",
            f"no scheduler answers there ({str(error).splitlines()[0][:120]})",
            remedy="check the address, and that the scheduler is running",
            where=scheduler,
        ) from None
    with closing(client):  # not its own block, which must end in the thread that began it
        yield client


@contextmanager
def _named(client: Client, label: str) -> Iterator[_Named]:
    """Submit a pool of tasks; cancel those that are still running when the block ends."""
    named = _Named(client, f"{label}-{uuid.uuid4().hex[:8]}")
    try:
        yield named
    finally:
        with suppress(Exception):  # the scheduler may be what is gone
            named.pool.shutdown(wait=False)


class _Named:
    """Dask's executor, with keys that name tasks."""

    def __init__(self, client: Client, label: str) -> None:
        self.pool = client.get_executor(pure=False, retries=2)
        self._label = label
        self._submitted = 0

    def submit(self, function: Callable[..., Any], /, *arguments: Any) -> Future[Any]:
        number, self._submitted = self._submitted, self._submitted + 1
        future: Future[Any] = self.pool.submit(function, *arguments, key=f"{self._label}-{number:06d}")
        return future


def _quieten() -> None:
    for name in ("distributed", "distributed.client", "distributed.comm", "tornado", "tornado.application", "asyncio"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # what matters of it is raised


def _require_dask() -> None:
    if find_spec("distributed") is None:
        remedy = f"install it: {how_to_install('distributed')}"
        raise UsageError("missing-extra", "Dask is not installed", remedy=remedy, where="--scheduler")
