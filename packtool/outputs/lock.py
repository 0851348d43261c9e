"""Lock a directory for one writer, by a file in it. The system unlocks it when the holder ends, even killed."""

from __future__ import annotations

import fcntl
import os
import socket
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from packtool.errors import DataError
from packtool.formats.names import LOCK
from packtool.warnings import warn


class Lock:
    """A lock, held until `release` or the end of the process; a line of text in its file says who holds it."""

    def __init__(self, handle: int, path: Path) -> None:
        self._handle = handle
        self.path = path

    def release(self) -> None:
        """Remove the file and unlock it. Releasing again does nothing."""
        if self._handle < 0:
            return
        with suppress(OSError):
            self.path.unlink()
        os.close(self._handle)
        self._handle = -1


def take(directory: Path, command: str, where: str) -> Lock:
    """Acquire the lock of a directory, which is made if necessary.

    Args:
        where: the output that is locked, for messages.

    Raises:
        DataError: another run holds it.
    """
    path = directory / LOCK
    while True:
        directory.mkdir(parents=True, exist_ok=True)
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
        except FileNotFoundError:
            continue  # a run that has just ended removed the directory
        try:
            _flock(handle, where)
            with suppress(FileNotFoundError):
                # Its holder may have removed the file after it was opened here: a lock on that keeps nobody out.
                if os.path.samestat(os.fstat(handle), path.stat()):
                    since = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
                    who = f"packtool {command} (process {os.getpid()} on {socket.gethostname()}, since {since})\n"
                    os.ftruncate(handle, 0)
                    os.pwrite(handle, who.encode(), 0)
                    return Lock(handle, path)
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)  # the file was removed: try again with a new one


def _flock(handle: int, where: str) -> None:
    """Lock an open file without waiting; warn if the file system has no locks."""
    holder = os.pread(handle, 1 << 10, 0).decode(errors="replace").strip()
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        what, remedy = f"{holder or 'another run'} is writing here", "wait until it has ended, or choose another output"
        raise DataError("output-in-use", what, remedy=remedy, where=where) from None
    except OSError as error:
        what = f"this file system has no locks ({error.strerror}), so a second run here would not be noticed"
        remedy = f"make sure that no other run writes to this output{f', in particular {holder}' * bool(holder)}"
        warn("no-locks", what, remedy=remedy, where=where)
