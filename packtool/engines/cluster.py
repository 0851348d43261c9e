"""Run tasks on the workers of a Dask cluster.

Tasks and results are small; what they read and write lies where every worker sees it. A task whose worker dies runs
again on another one.
"""

from __future__ import annotations

import itertools
import logging
import math
import os
import pickle
import threading
import time
import uuid
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from packtool.engines.engine import NO_OPTIONS, Engine, Result, RunOptions, Task, TaskFunction, Worker, submit
from packtool.engines.local import WITHOUT_SCRIPT
from packtool.engines.sending import sent
from packtool.errors import DataError, PacktoolError, UsageError
from packtool.support import temporary
from packtool.support.installing import how_to_install
from packtool.support.system_errors import refused_by_system
from packtool.support.version import build
from packtool.warnings import warn

if TYPE_CHECKING:
    from concurrent.futures import Future

    from distributed import Client

LOCAL = "local"
"""In place of an address: a scheduler and workers of this run's own, on this machine."""
CONNECT_TIMEOUT = "5s"
"""Time to wait for a scheduler."""
POLL_SECONDS = 1.0
"""Time after which the scheduler is asked again who its workers are."""
WARN_SECONDS = 30.0
"""Time after which the user is told again that there are no workers."""
LOST_SECONDS = 600.0
"""Time after which workers that had come and have gone are no longer waited for."""

_ONE_AT_A_TIME = threading.Lock()  # encoders are one for each process, whatever number of threads a worker has
_ABSENT = ("missing-input", "missing-shard", "no-manifest")  # errors for files that are not there


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
        self._client: tuple[Client, WorkerWatch] | None = None

    def run(
        self, function: TaskFunction[Task, Result], tasks: Sequence[Task], options: RunOptions = NO_OPTIONS
    ) -> Generator[tuple[int, Result], None, None]:
        if not tasks:
            return
        from concurrent.futures import CancelledError

        from distributed import KilledWorker
        from distributed.client import FutureCancelledError

        client, workers = self._connected()
        with (
            sent(function, options.work) as call,
            _begins(client, self._label, partial(on_worker, _pickled(call), build())) as begin,
        ):
            try:
                for number, (result, done) in submit(begin, tasks, workers.at_once):
                    if options.on_advance is not None:
                        options.on_advance(done)
                    yield number, result
            except KilledWorker as error:
                what = f"several workers died with the same task ({error.task}), most likely because memory ran out"
                remedy = "give workers more memory; with --resume=True what is finished is kept"
                raise PacktoolError("worker-died", what, remedy=remedy) from None
            except (CancelledError, FutureCancelledError):
                raise lost("the scheduler is gone, or gave the tasks up", self._scheduler) from None
            except DataError as error:
                raise _seen_here(error) from None

    def _connected(self) -> tuple[Client, WorkerWatch]:
        """Connect to the scheduler when it is first needed."""
        from distributed import Client

        with self._connecting:
            if self._client is None:
                address = self._stack.enter_context(started(self._scheduler, self.workers))
                where = {"scheduler_file": address} if Path(address).is_file() else {"address": address}
                try:
                    client = Client(**where, timeout=CONNECT_TIMEOUT)
                except (OSError, ValueError, TimeoutError, TypeError, RuntimeError) as error:  # the last two of TLS
                    what = f"no scheduler answers there ({str(error).splitlines()[0][:120]})"
                    remedy = "check the address, that the scheduler is running, and for TLS the certificates"
                    raise PacktoolError("no-cluster", what, remedy=remedy, where=address) from None
                # Its own block would have to end in the thread that began it.
                self._stack.callback(client.close)
                self._client = client, WorkerWatch(client, self._scheduler)
            return self._client

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        lost = isinstance(error, PacktoolError) and error.code == "cluster-lost"
        if self._client is not None and self._at_end is not None and not lost:
            with suppress(Exception):  # whatever comes of it
                client, _ = self._client
                client.run(self._at_end, on_error="ignore")
        self._client = None
        self._stack.close()


class WorkerWatch:
    """The workers of a cluster, as its scheduler knows them now and then.

    Tasks wait for workers as long as the scheduler lives: a queue may let them begin after hours. But the user is told,
    and workers that had come and have all gone most likely don't come back.

    Args:
        client: of the cluster.
        scheduler: its address, as the user gave it.
    """

    def __init__(self, client: Client, scheduler: str) -> None:
        self._client = client
        self._scheduler = scheduler
        self._id = client.scheduler_info()["id"]
        self._polling = threading.Lock()  # several threads may run tasks
        self._threads = 0
        self._had_some = False
        self._next_poll = -math.inf
        self._alone_since = time.monotonic()
        self._next_warning = -math.inf

    def at_once(self) -> int:
        """Return how many tasks to give to the workers; the scheduler is asked every `POLL_SECONDS`.

        Raises:
            PacktoolError: `cluster-lost`: all workers have been gone for `LOST_SECONDS`; the scheduler is another one.
        """
        with self._polling:
            now = time.monotonic()
            if now >= self._next_poll:
                self._poll(now)
                self._next_poll = now + POLL_SECONDS
            # Each thread gets one task ahead. Without workers a task still goes to the scheduler, as a pool that adapts
            # to its tasks starts workers only then.
            return 2 * max(1, self._threads)

    def _poll(self, now: float) -> None:
        # A scheduler that was started again at the same address knows nothing of the tasks. The client connects to it
        # in silence, and would wait for ever.
        if self._client.scheduler_info()["id"] != self._id:
            raise lost("the scheduler was started again, and has lost the tasks", self._scheduler)
        try:
            self._threads = sum(self._client.nthreads().values())
        except OSError:
            return  # the client loses its connection, too, and then cancels the tasks
        if self._threads:
            self._had_some = True
            self._alone_since = now
            self._next_warning = now + WARN_SECONDS  # one that is started again is back before
            return
        alone = now - self._alone_since
        if self._had_some and alone >= LOST_SECONDS:
            raise lost(f"all its workers have been gone for {alone / 60:.0f} minutes", self._scheduler)
        if now >= self._next_warning:
            self._next_warning = now + WARN_SECONDS
            what = "all workers are gone" if self._had_some else "no workers yet"
            waited = f", after {alone:.0f} s" if alone >= 1 else ""
            start = f"--scheduler-file {self._scheduler}" if Path(self._scheduler).is_file() else self._scheduler
            warn("no-workers", what + waited, remedy=f"start some: dask worker {start}", where=self._scheduler)


def lost(what: str, scheduler: str) -> PacktoolError:
    """Return the error for a cluster that does not run the tasks any more."""
    remedy = "start it again, then give --resume=True: what is finished is kept"
    return PacktoolError("cluster-lost", what, remedy=remedy, where=scheduler)


def on_worker(function: bytes, version: str, task: bytes) -> tuple[Any, int]:
    """Run a task on a worker, after checking that the worker's version and directories match the command's.

    Both the function and the task open datasets when they are unpickled. If Dask did that, it would happen before the
    task begins: an error there ends the worker, and then the next one that gets the task.

    Args:
        function: of a task, pickled; perhaps one in a file, which the worker must see.
        version: the command's build of packtool. This function must keep its arguments: a worker of another commit must
            come as far as the comparison.
        task: pickled.

    Returns:
        The task's result, and the progress it reported through `Worker.advance`.
    """
    from distributed import get_worker

    here = f"the worker on {os.uname().nodename}"
    if version != build():
        what = f"{here} has packtool {build()}, but the command is packtool {version}"
        raise DataError("worker-differs", what, remedy="install the same version everywhere")
    with suppress(ValueError):  # called by no worker
        temporary.make_in(Path(get_worker().local_directory))
    done: list[int] = []
    with _ONE_AT_A_TIME, _naming(here):
        call, unpickled = pickle.loads(function), pickle.loads(task)
        return call(unpickled, Worker(done.append)), sum(done)


@contextmanager
def _naming(here: str) -> Iterator[None]:
    """Name this worker in errors that it has and others may not have.

    Of files that are not there it says that it does not see them; the command knows whether they exist. What is wrong
    with the input is as wrong on any other worker.
    """
    try:
        yield
    except FileNotFoundError as error:
        if not isinstance(error.filename, str | bytes | Path):
            raise
        where = os.fsdecode(error.filename)
    except UsageError as error:  # the command has checked its options
        raise UsageError(error.code, f"{here}: {error.what}", remedy=error.remedy, where=error.where) from None
    except DataError as error:
        if error.where is None or "://" in error.where or not _is_absent(error):  # a URL is the same for all
            raise
        where = error.where
    except PacktoolError:
        raise
    except Exception as error:
        refused = refused_by_system(error)
        if refused is not None:
            what = f"{here}: {refused.what}"
            raise DataError(refused.code, what, remedy=refused.remedy, where=refused.where) from None
        if isinstance(error, ImportError):
            what, remedy = f"{here} can't import what it needs ({error})", "install the same packtool there as here"
            raise DataError("worker-broken", what, remedy=remedy) from None
        error.add_note(f"on {here}")
        raise
    else:
        return
    remedy = "put inputs and output on a file system that all workers share, under the same path"
    raise DataError("not-shared", f"{here} doesn't see it", remedy=remedy, where=where)


def _is_absent(error: DataError) -> bool:
    """Return whether an error on a worker is about a file that does not exist there."""
    if error.code == "input-changed":  # from when the command found it to when the worker opened it
        return error.where is not None and not Path(error.where).exists()
    return error.code in _ABSENT


def _seen_here(error: DataError) -> DataError:
    """Return an error of a worker; where it is about a file that is not here either, that the file is missing."""
    if error.code != "not-shared" or error.where is None or Path(error.where).exists():
        return error
    return DataError("missing-input", "no such file or directory", remedy="check the path", where=error.where)


def _pickled(item: object) -> bytes:
    return pickle.dumps(item, protocol=5)


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
    client: Client, label: str, function: Callable[[bytes], Result]
) -> Iterator[Callable[[Task], Future[Result]]]:
    """Yield a function that begins a task; when the block ends, cancel the tasks that still run.

    Args:
        label: begins the keys of the tasks, by which the cluster shows them.
    """
    executor = client.get_executor(pure=False, retries=2)
    run, numbers = f"{label}-{uuid.uuid4().hex[:8]}", itertools.count()

    def begin(task: Task) -> Future[Result]:
        future: Future[Result] = executor.submit(function, _pickled(task), key=f"{run}-{next(numbers):06d}")
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
