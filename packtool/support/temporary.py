"""Temporary directories that are removed even when a signal stops the command."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_made: set[Path] = set()
_place: list[Path] = []  # the directory for temporary ones of this process, if not the system's


def make_in(place: Path) -> None:
    """Make this process's temporary directories there from now on, on a disk of this machine."""
    _place[:] = [place]


@contextmanager
def temporary_directory() -> Iterator[Path]:
    """Make a directory that goes when the block ends."""
    path = Path(tempfile.mkdtemp(prefix="packtool-", dir=_place[0] if _place else None))
    _made.add(path)
    try:
        yield path
    finally:
        _remove(path)


@contextmanager
def own_directory(parent: Path | None, prefix: str) -> Iterator[Path]:
    """Make a directory for one attempt at a task: a task whose worker seemed dead may run twice at the same time.

    Args:
        parent: where its results will stay; None for a disk of the worker's own.
        prefix: of its name.
    """
    if parent is None:
        with temporary_directory() as path:
            yield path
    else:
        with tempfile.TemporaryDirectory(prefix=prefix, dir=parent) as name:
            yield Path(name)


def directory_of(run: str) -> Path:
    """Return the directory of this process for a run, which is made if need be, until `discard_runs`."""
    root = _place[0] if _place else Path(tempfile.gettempdir())
    path = root / f"{_of_runs()}{run}"
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    _made.add(path)
    return path


def discard_runs() -> None:
    """Remove the directories of `directory_of` of this process."""
    for path in [directory for directory in _made if directory.name.startswith(_of_runs())]:
        _remove(path)


def remove_all() -> None:
    """Remove all temporary directories, when the process ends without leaving their blocks."""
    for path in list(_made):
        _remove(path)


def _of_runs() -> str:
    return f"packtool-{os.getpid()}-"


def _remove(path: Path) -> None:
    _made.discard(path)
    shutil.rmtree(path, ignore_errors=True)
