"""Temporary directories that are gone even when the command is ended where it is."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_made: set[Path] = set()


@contextmanager
def temporary_directory() -> Iterator[Path]:
    """A new directory, until the end of the block."""
    path = Path(tempfile.mkdtemp(prefix="packtool-"))
    _made.add(path)
    try:
        yield path
    finally:
        _made.discard(path)
        shutil.rmtree(path, ignore_errors=True)


def remove_all() -> None:
    """Remove those that there are, for whoever ends the process without leaving their blocks."""
    for path in list(_made):
        shutil.rmtree(path, ignore_errors=True)
