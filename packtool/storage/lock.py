"""Lock an output for one writer; the system releases the lock when its holder ends, however it ends."""

from __future__ import annotations

import fcntl
import os
import socket
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from packtool.errors import DataError
from packtool.storage.manifest import decode
from packtool.warnings import warn

LOCK = "lock"


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

    Args:
        handle: the open file that holds it.
        path: of that file.
    """

    def __init__(self, handle: int, path: Path) -> None:
        self._handle: int | None = handle
        self._path = path

    def release(self) -> bool:
        """Remove its file and let go of it; whether it was still held."""
        handle, self._handle = self._handle, None
        if handle is None:
            return False
        with suppress(OSError):
            self._path.unlink()
        os.close(handle)
        return True


def take(directory: Path, command: str) -> Lock:
    """Acquire the lock of a directory, which is created if need be; raise a DataError where another run holds it.

    Args:
        command: for the message to those who would, too.
    """
    path = directory / LOCK
    return Lock(_sign(_take(path), command), path)


def _take(path: Path) -> int:
    """Open a file, and lock it."""
    while True:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
        except FileNotFoundError:
            continue  # a run that ended just now removed the directory
        try:
            _lock(handle, path)
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


def _lock(handle: int, path: Path) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise _in_use(handle, path) from None
    except OSError as error:
        # Some network file systems have no locks. All there is to go by is the process that the file names.
        holder = _holder(handle)
        if holder is not None and holder.host == socket.gethostname() and _lives(holder.process):
            raise _in_use(handle, path) from None
        what = f"this file system has no locks ({error.strerror}), so a second run here would not be noticed"
        remedy = "make sure that no other run writes to this output"
        if holder is not None and holder.host != socket.gethostname():
            remedy += f", above all {holder}"
        warn("no-locks", what, remedy=remedy, where=str(path.parent.parent))


def _in_use(handle: int, path: Path) -> DataError:
    who = _holder(handle) or "another run of packtool"
    remedy = "wait until it has ended, or choose another output"
    return DataError("output-in-use", f"{who} is writing here", remedy=remedy, where=str(path.parent.parent))


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
