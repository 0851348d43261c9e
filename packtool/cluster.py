"""The tasks of the executor on a Dask cluster: the same functions, order and errors.

Tasks and results are small; what they read and write lies on file systems that every worker sees. A task whose worker
dies runs again on another one.
"""

from __future__ import annotations

import logging
import os
import threading
import uuid
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from packtool import __version__, executor, temporary
from packtool.errors import DataError, PacktoolError, UsageError
from packtool.installing import how_to_install

if TYPE_CHECKING:
    from concurrent.futures import Future

    from distributed import Client

Task = TypeVar("Task")
Result = TypeVar("Result")

LOCAL = "local"
"""In place of an address: a scheduler and workers of this run's own, on this machine."""
PATIENCE = "30s"
"""How long to wait for a scheduler."""

_one_at_a_time = threading.Lock()


@dataclass(frozen=True)
class Cluster:
    """Where tasks run, and what they are called there.

    Attributes:
        scheduler: its address, such as tcp://host:8786; a scheduler file; or `LOCAL`.
        workers: processes of a local cluster; others have as many as they have.
        label: names the tasks on the dashboard: label-ID-number.
    """

    scheduler: str
    workers: int
    label: str


class OnWorker(Generic[Task, Result]):
    """A task's function as it runs on a worker, which may differ from this machine in what must not differ.

    Args:
        function: of a task.
        shared: a file that every worker must see; None where they share no directory.
    """

    def __init__(self, function: Callable[[Task], Result], shared: Path | None) -> None:
        self._function = function
        self._shared = shared
        self._version = __version__

    def __call__(self, task: Task) -> tuple[Result, int]:
        """The result, and how much the task reported through `executor.advance`."""
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
        # Progress and encoders are one for each process, whatever number of threads the worker has.
        with _one_at_a_time:
            done = 0

            def advance(amount: int) -> None:
                nonlocal done
                done += amount

            ((_, result),) = executor.run(self._function, [task], on_advance=advance)
            return result, done


def run(
    function: Callable[[Task], Result],
    tasks: Sequence[Task],
    cluster: Cluster,
    *,
    shared: Path | None,
    on_advance: executor.Advance | None = None,
) -> Generator[tuple[int, Result], None, None]:
    """As `executor.run`, on the workers of a cluster.

    Args:
        shared: a file that every worker must see; None where they share no directory.

    Raises:
        PacktoolError: `no-cluster`, `cluster-lost`, `worker-died`, `worker-differs`, `not-shared`; what a task raised.
    """
    if not tasks:
        return
    from concurrent.futures import CancelledError

    from distributed import KilledWorker
    from distributed.client import FutureCancelledError

    with _client(cluster.scheduler, cluster.workers) as client, _named(client, cluster.label) as pool:
        at_once = 2 * max(1, sum(client.nthreads().values()))
        try:
            for number, (result, done) in executor.submit(pool, OnWorker(function, shared), tasks, at_once):
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
                where=cluster.scheduler,
            ) from None


def run_on(
    where: Cluster | None,
    function: Callable[[Task], Result],
    tasks: Sequence[Task],
    *,
    workers: int,
    shared: Path,
    on_advance: executor.Advance | None = None,
) -> Iterator[tuple[int, Result]]:
    """As `run` on a cluster, or with None as `executor.run` on so many processes here."""
    if where is None:
        return executor.run(function, tasks, workers=workers, on_advance=on_advance)
    return run(function, tasks, where, shared=shared, on_advance=on_advance)


def on_each_worker(function: Callable[[], object], cluster: Cluster) -> None:
    """Call a function on all workers that are there, whatever comes of it."""
    with suppress(Exception), _client(cluster.scheduler, cluster.workers) as client:
        client.run(function, on_error="ignore")


@contextmanager
def _named(client: Client, label: str) -> Iterator[_Named]:
    """A pool of tasks; those that nobody waits for any more are taken back in the end."""
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

    def submit(self, function: Callable[[Any], Any], task: Any) -> Future[Any]:
        number, self._submitted = self._submitted, self._submitted + 1
        future: Future[Any] = self.pool.submit(function, task, key=f"{self._label}-{number:06d}")
        return future


@dataclass
class _Kept:
    """What is open until the outermost `kept` ends."""

    clients: dict[tuple[str, int], Client] = field(default_factory=dict)
    stack: ExitStack = field(default_factory=ExitStack)
    users: int = 0


_kept = _Kept()
_opening = threading.Lock()


@contextmanager
def kept() -> Iterator[None]:
    """Connections and clusters of `LOCAL` that are opened meanwhile stay open, and serve all that runs in it."""
    with _opening:
        _kept.users += 1
    try:
        yield
    finally:
        with _opening:
            _kept.users -= 1
            if not _kept.users:
                _kept.clients.clear()
                _kept.stack.pop_all().close()


@contextmanager
def _client(scheduler: str, workers: int) -> Iterator[Client]:
    """A client of the scheduler; of a cluster of its own for `LOCAL`."""
    with ExitStack() as alone:
        with _opening:
            client = _kept.clients.get((scheduler, workers))
            if client is None:
                client = (_kept.stack if _kept.users else alone).enter_context(_connected(scheduler, workers))
                if _kept.users:
                    _kept.clients[scheduler, workers] = client
        yield client


@contextmanager
def _connected(scheduler: str, workers: int) -> Iterator[Client]:
    """A new client, or a new cluster and its client."""
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        raise UsageError(
            "missing-extra",
            "Dask is not installed",
            remedy=f"install it: {how_to_install('distributed')}",
            where="--scheduler",
        ) from None
    for name in ("distributed", "distributed.client", "distributed.comm", "tornado", "tornado.application", "asyncio"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # what matters of it is raised
    if scheduler == LOCAL:
        with (
            executor.without_script(),  # also where a worker that died is started again
            LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=":0") as cluster,
            closing(Client(cluster)) as client,  # not its own block, which must end in the thread that began it
        ):
            yield client
        return
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
    with closing(client):
        yield client
