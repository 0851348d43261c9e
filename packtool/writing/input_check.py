"""Verify the checksum of every input file, once in a run, while copying."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from threading import Event
from types import TracebackType

from packtool.engines import Engine, RunOptions, Threads, Worker
from packtool.errors import DataError
from packtool.places.place import MappedFile

_BLOCK_BYTES = 1 << 24


class InputCheck:
    """Hashes files in the background, from when it is entered until it is left.

    Nothing that was made of damaged input may be kept: what a resumed run would find waits in `keep` until all input is
    known to be sound.

    Args:
        files: the input.
        engine: hashes them during its other tasks.
        work: a directory that all workers see.
    """

    def __init__(self, files: Iterable[MappedFile], *, engine: Engine | None = None, work: Path | None = None) -> None:
        self._files = list(files)
        self._engine = (engine or Threads(1)).background
        self._work = work
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="packtool-check")
        self._stopped = Event()
        self._done: Future[None]
        self._kept: list[Callable[[], object]] = []

    def __enter__(self) -> InputCheck:
        self._done = self._pool.submit(self._run)
        return self

    def __exit__(self, kind: type[BaseException] | None, value: object, trace: TracebackType | None) -> None:
        self._stopped.set()
        self._pool.shutdown()
        if value is not None:
            with suppress(Exception):  # the check was stopped, or it is what failed
                self.require_sound()

    def keep(self, action: Callable[[], object]) -> None:
        """Defer an action until all input is known to be sound. Only one thread may call this.

        Raises:
            DataError: it is not.
        """
        self._kept.append(action)
        if self._done.done():
            self.require_sound()

    def require_sound(self) -> None:
        """Wait for all checksums, and do what was deferred.

        Raises:
            DataError: with the first file that differs from its entry in the manifest.
        """
        self._done.result()
        while self._kept:
            self._kept.pop(0)()

    def _run(self) -> None:
        options = RunOptions(on_advance=self._unless_stopped, work=self._work)
        hashing = self._engine.run(_fault, self._files, options)
        with closing(hashing) as results:
            for _, error in results:
                if error is not None:
                    raise error

    def _unless_stopped(self, _: int) -> None:
        if self._stopped.is_set():
            raise CancelledError


def _fault(file: MappedFile, worker: Worker) -> DataError | None:
    hashed = file.hash_of_header()
    data = file.bytes()
    for first in range(0, len(data), _BLOCK_BYTES):
        block = data[first : first + _BLOCK_BYTES]
        hashed.update(block)
        worker.advance(len(block))
    try:
        file.require(hashed.hexdigest())
    except DataError as error:
        return error
    return None
