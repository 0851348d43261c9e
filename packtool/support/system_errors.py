"""Phrase what the operating system refuses: room on a disk, memory, threads, access to a file."""

from __future__ import annotations

import errno
import os
import re
import resource

from packtool.errors import DataError
from packtool.support.sizes import show_bytes

_SYSTEM = {
    errno.ENOSPC: ("disk-full", "no space left on the device", "free some space and run the command again"),
    errno.EDQUOT: ("disk-full", "disk quota exceeded", "free some space and run the command again"),
    errno.EACCES: ("permission-denied", "permission denied", "check the permissions"),
    errno.EPERM: ("permission-denied", "operation not permitted", "check the permissions"),
    errno.EROFS: ("permission-denied", "read-only file system", "write somewhere else"),
    errno.ENOENT: ("missing-input", "no such file or directory", "check the path"),
    errno.EISDIR: ("missing-input", "is a directory", "give a file"),
    errno.ENOTDIR: ("missing-input", "is not a directory", "check the path"),
    errno.EMFILE: ("too-many-files", "too many open files", "raise the limit with ulimit -n"),
    errno.EIO: ("io-error", "input/output error", "check the disk"),
}


_NOT_LOADED = re.compile("failed to map segment|cannot allocate memory|cannot apply additional memory protection", re.I)
"""What the system's loader says of a library for which there is no room."""


def refused_by_system(error: Exception) -> DataError | None:
    """Return what the system has refused this process, as an error for the user; None for other errors.

    >>> print(refused_by_system(PermissionError(errno.EACCES, "Permission denied", "a.jsonl")))
    a.jsonl: permission denied. Check the permissions.
    """
    lacking = _lacks_memory(error)
    if lacking:
        return _out_of_memory(lacking)
    if isinstance(error, RuntimeError) and "can't start new thread" in str(error):
        what, remedy = "the system lets it start no more threads", "raise ulimit -v and ulimit -u, or free some memory"
        return DataError("out-of-memory", what, remedy=remedy)
    if isinstance(error, OSError):
        return _from_system(error)
    return None


def _lacks_memory(error: Exception) -> str:
    """Say what memory was lacking for; "" for other errors, and for those of files."""
    if isinstance(error, MemoryError):
        return "not enough memory"
    by_loader = isinstance(error, ImportError) or (isinstance(error, OSError) and error.errno is None)
    if by_loader and _NOT_LOADED.search(str(error)):
        return "not enough memory to load a library"
    if isinstance(error, SystemError) and _memory_limit() is not None:
        return "the interpreter failed, most likely for lack of memory"
    return ""


def _memory_limit() -> int | None:
    """Return the bytes of memory that this process may map; None without a limit."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if limit == resource.RLIM_INFINITY else limit


def _out_of_memory(what: str, where: str | None = None) -> DataError:
    """Return the error for memory that the system refuses, with the limit of this process if it has one."""
    limit = _memory_limit()
    remedy = "give less --memory or fewer --workers"
    if limit is not None:
        what += f", of which ulimit -v allows {show_bytes(limit)}"
        remedy += ", or raise the limit"
    return DataError("out-of-memory", what, remedy=remedy, where=where)


def _too_large(where: str | None) -> DataError:
    """Return the error for a file that the system lets grow no more."""
    limit, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    what, remedy = "larger than the file system lets a file be", "write to another file system"
    if limit != resource.RLIM_INFINITY:
        what, remedy = f"larger than ulimit -f allows, {show_bytes(limit)}", "raise the limit"
    again = "then run the command again with --resume: what is finished is kept"
    return DataError("file-too-large", what, remedy=f"{remedy}, {again}", where=where)


def _from_system(error: OSError) -> DataError | None:
    if error.errno is None:
        return None
    where = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else None
    if error.errno == errno.EFBIG:
        return _too_large(where)
    if error.errno == errno.ENOMEM:
        return _out_of_memory("not enough memory", where)
    reason = (error.strerror or "failed").lower()
    code, what, remedy = _SYSTEM.get(error.errno, ("system-error", reason, "check the path and the machine"))
    return DataError(code, what, remedy=remedy, where=where)
