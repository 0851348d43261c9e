"""What is read is what was written: the checksum of every input file, once in a run, beside the copying."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from threading import Event
from types import TracebackType

from packtool.storage.reading import MappedFile

_BLOCK_BYTES = 1 << 24


class InputCheck:
    """Hashes files in a thread of its own, from when it is entered until it is left.

    Nothing that was made of damaged input may be kept: what a resumed run would find waits in `keep` until all input is
    known to be sound.

    Args:
        files: what is read.
    """

    def __init__(self, files: Iterable[MappedFile]) -> None:
        self._files = files
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="packtool-check")
        self._stopped = Event()
        self._done: Future[None]
        self._kept: list[Callable[[], None]] = []

    def __enter__(self) -> InputCheck:
        self._done = self._pool.submit(self._run)
        return self

    def __exit__(self, kind: type[BaseException] | None, value: object, trace: TracebackType | None) -> None:
        self._stopped.set()
        self._pool.shutdown()

    def keep(self, action: Callable[[], None]) -> None:
        """Do this as soon as all input is known to be sound. To be called by one thread.

        Raises:
            DataError: it is not.
        """
        self._kept.append(action)
        if self._done.done():
            self.require_sound()

    def require_sound(self) -> None:
        """Wait for all checksums, and do what waits for them.

        Raises:
            DataError: naming the first file that differs from what its manifest says.
        """
        self._done.result()
        while self._kept:
            self._kept.pop(0)()

    def _run(self) -> None:
        for file in self._files:
            hashed = file.hash_of_header()
            data = file.bytes()
            for first in range(0, len(data), _BLOCK_BYTES):
                if self._stopped.is_set():
                    raise CancelledError
                hashed.update(data[first : first + _BLOCK_BYTES])
            file.require(hashed.hexdigest())
