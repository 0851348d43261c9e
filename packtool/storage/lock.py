"""Lock an output for one writer; the system releases the lock when its holder ends, however it ends.

Tasks that write one output together share its lock, and each has one of its own, so that none runs twice at once.
"""

from __future__ import annotations

import fcntl
import os
import socket
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from packtool.errors import DataError
from packtool.storage.manifest import decode
from packtool.warnings import warn

LOCK = "lock"
"""Beside it lie ``task-00001.lock`` and so on, of the tasks that share it."""


class Holder(msgspec.Struct, frozen=True):
    """Who writes to an output: for the message to those who would, too."""

    command: str
    process: int
    host: str
    since: str

    def __str__(self) -> str:
        return f"packtool {self.command} (process {self.process} on {self.host}, since {self.since})"


class Lock:
    """A lock, held until `release` or the end of the process.

    Attributes:
        held: open files that hold it, and those of their paths that go with it.
        shared: others may hold it, too.
    """

    def __init__(self, held: Iterable[tuple[int, Path | None]]) -> None:
        self._held = list(held)
        self.shared = any(path is None for _, path in self._held)

    def release(self) -> bool:
        """Remove its files and let go of it; whether it was still held."""
        held, self._held = self._held, []
        for handle, path in reversed(held):
            with suppress(OSError):
                if path is not None:
                    path.unlink()
            os.close(handle)
        return bool(held)


def take(directory: Path, command: str, task: int = 0) -> Lock:
    """Acquire the lock of a directory, which is created if need be; raise a DataError where another run holds it.

    Args:
        command: for the message to those who would, too.
        task: of several that write there together; 0 for a run that writes alone.
    """
    path = directory / LOCK
    if not task:
        return Lock([(_sign(_take(path, fcntl.LOCK_EX), command), path)])
    shared = _take(path, fcntl.LOCK_SH)
    try:
        own = directory / f"task-{task:05d}.lock"
        return Lock([(shared, None), (_sign(_take(own, fcntl.LOCK_EX), command), own)])
    except BaseException:
        os.close(shared)
        raise


def _take(path: Path, kind: int) -> int:
    """Open a file, and take a lock of this kind on it."""
    while True:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
        except FileNotFoundError:
            continue  # a run that ended just now removed the directory
        try:
            _lock(handle, path, kind)
        except BaseException:
            os.close(handle)
            raise
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(handle), path.stat()):
                return handle
        os.close(handle)  # its holder ended just now, and removed it


def _sign(handle: int, command: str) -> int:
    """Write down who holds a lock."""
    holder = Holder(command, os.getpid(), socket.gethostname(), datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC"))
    os.ftruncate(handle, 0)
    os.pwrite(handle, msgspec.json.encode(holder), 0)
    return handle


def _lock(handle: int, path: Path, kind: int) -> None:
    try:
        fcntl.flock(handle, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        raise _in_use(handle, path, kind) from None
    except OSError as error:
        # Some network file systems have no locks. All there is to go by is the process that the file names.
        holder = _holder(handle)
        if holder is not None and holder.host == socket.gethostname() and _lives(holder.process):
            raise _in_use(handle, path, kind) from None
        what = f"this file system has no locks ({error.strerror}), so a second run here would not be noticed"
        remedy = "make sure that no other run writes to this output"
        if holder is not None and holder.host != socket.gethostname():
            remedy += f", above all {holder}"
        warn("no-locks", what, remedy=remedy, where=str(path.parent.parent))


def _in_use(handle: int, path: Path, kind: int) -> DataError:
    tasks = _tasks_at_work(path.parent) if kind == fcntl.LOCK_EX and path.name == LOCK else []
    who = (tasks[0] if tasks else _holder(handle)) or "another run of packtool"
    remedy = "wait until it has ended, or choose another output"
    return DataError("output-in-use", f"{who} is writing here", remedy=remedy, where=str(path.parent.parent))


def _tasks_at_work(directory: Path) -> list[Holder]:
    """List the tasks that share the lock of a directory."""
    holders = []
    for path in sorted(directory.glob("task-*.lock")):
        with suppress(OSError):
            handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                if (holder := _holder(handle)) is not None:
                    holders.append(holder)
            finally:
                os.close(handle)
    return holders


def _holder(handle: int) -> Holder | None:
    try:
        return decode(os.pread(handle, 1 << 12, 0), Holder)
    except ValueError:
        return None  # it has the lock, and has not written its name yet


def _lives(process: int) -> bool:
    """Return whether another process with this number runs."""
    try:
        os.kill(process, 0)
    except OSError as error:
        return not isinstance(error, ProcessLookupError)
    return process != os.getpid()
