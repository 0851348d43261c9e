"""Name the file in the system's errors: what fails through a descriptor or a map says only why."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def naming(path: object) -> Iterator[None]:
    """Name a file in the errors that the system raises in the block, where they name no other.

    >>> import errno
    >>> with naming("a.npy"):
    ...     raise OSError(errno.EFBIG, "File too large")
    Traceback (most recent call last):
    OSError: [Errno 27] File too large: 'a.npy'
    """
    try:
        yield
    except OSError as error:
        if error.errno is not None and error.filename is None:
            error.filename = str(path)
        raise
