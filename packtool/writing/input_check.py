"""Verify the checksum of every input file, once in a run, while copying."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from threading import Event
from types import TracebackType

import msgspec

from packtool.engines import Engine, Threads, Worker
from packtool.errors import DataError
from packtool.places.place import MappedFile
from packtool.storage.output import Pieces

_BLOCK_BYTES = 1 << 24


class Checked(msgspec.Struct, frozen=True):
    """The verdict on an input file: how it is damaged, or that it is sound."""

    damage: str = ""


class InputCheck:
    """Hashes files beside other work, from when it is entered until it is left.

    Nothing that was made of damaged input may be kept: what a resumed run would find waits in `keep` until all input is
    known to be sound. Of several tasks that share the work each hashes some of the files and records the verdicts, all
    of which `merge` needs.

    Args:
        files: the input, by number.
        pieces: for the verdicts; None where one run checks all files.
        engine: hashes them beside its other tasks.
        shared: a file that all workers see.
    """

    def __init__(
        self,
        files: Mapping[int, MappedFile],
        *,
        pieces: Pieces[Checked] | None = None,
        engine: Engine | None = None,
        shared: Path | None = None,
    ) -> None:
        self._files = files
        self._pieces = pieces
        self._engine = (engine or Threads(1)).beside
        self._shared = shared
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
            DataError: naming the first file that differs from what its manifest says.
        """
        self._done.result()
        while self._kept:
            self._kept.pop(0)()

    def _run(self) -> None:
        known = {}
        if self._pieces is not None:
            _require_undamaged(self._pieces)
            known = self._pieces.recorded(self._files)
        todo = [number for number in self._files if number not in known]
        files = [self._files[number] for number in todo]
        hashing = self._engine.run(_fault, files, on_advance=self._unless_stopped, shared=self._shared)
        with closing(hashing) as results:
            for at, error in results:
                if self._pieces is not None:
                    self._pieces.record(todo[at], Checked("" if error is None else str(error)))
                if error is not None:
                    raise error

    def _unless_stopped(self, _: int) -> None:
        if self._stopped.is_set():
            raise CancelledError


def _fault(file: MappedFile, worker: Worker) -> DataError | None:
    hashed = file.hash_of_header()
    data = file.bytes()
    for first in range(0, len(data), _BLOCK_BYTES):
        hashed.update(block := data[first : first + _BLOCK_BYTES])
        worker.advance(len(block))
    try:
        file.require(hashed.hexdigest())
    except DataError as error:
        return error
    return None


def unchecked(pieces: Pieces[Checked], files: int) -> list[int]:
    """List the numbers of the input files that no task has checked.

    Raises:
        DataError: one was damaged when a task read it.
    """
    _require_undamaged(pieces)
    known = pieces.recorded(range(files))
    return [number for number in range(files) if number not in known]


def _require_undamaged(pieces: Pieces[Checked]) -> None:
    for checked in pieces.recorded(pieces.numbers()).values():
        if checked.damage:
            raise DataError(
                "input-was-damaged",
                f"a task found damaged input, which others may have copied: {checked.damage}",
                remedy="restore the input, remove the output, and run all tasks again",
                where=str(pieces.output.place),
            )
