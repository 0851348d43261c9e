"""List every file below a directory or URL once, in an order that does not depend on the machine."""

from __future__ import annotations

import os
import stat
from pathlib import Path, PurePosixPath

import msgspec

from packtool.corpus.open import in_store
from packtool.errors import DataError


class Entry(msgspec.Struct, frozen=True):
    """One thing that is not a directory.

    Attributes:
        name: relative to the place that was searched.
        location: local path or URL.
        problem: why it can't be read: not a regular file, or a link to nothing.
    """

    name: str
    location: str
    problem: str = ""


def shown(path: str) -> str:
    """Write a path as messages and manifests have it: the same in every locale, and text even if its bytes are not
    UTF-8.

    >>> shown("caf\\udce9.txt")
    'caf\\\\xe9.txt'
    """
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def local(top: str) -> tuple[list[Entry], list[str]]:
    """List the files under a local directory, to its depths, without hidden ones and those whose name begins with `_`.

    Links are followed. Each directory is entered once, by its own name rather than by a link's.

    Returns:
        The entries, sorted by name; and links to directories that are read under another name already.

    Raises:
        DataError: a directory can't be listed.
    """
    entries: list[Entry] = []
    repeated: list[str] = []
    seen: set[tuple[int, int]] = set()
    folders = [top]
    links: list[str] = []  # followed last, so that a directory goes by its own name
    while folders or links:
        folder = folders.pop() if folders else links.pop()
        try:
            about = Path(folder).stat()
            identity = (about.st_dev, about.st_ino)
            if identity in seen:
                repeated.append(folder)
                continue
            seen.add(identity)
            with os.scandir(folder) as scanned:
                inside = sorted(scanned, key=lambda each: os.fsencode(each.name), reverse=True)
        except OSError as error:
            raise _unreadable(error, folder) from None
        for each in inside:
            if hidden(each.name):
                continue
            if Path(each.path).is_dir():
                (links if each.is_symlink() else folders).append(each.path)
            else:
                entries.append(Entry(os.path.relpath(each.path, top), each.path, _problem(each.path)))
        links.sort(key=os.fsencode, reverse=True)
    return sorted(entries, key=lambda entry: os.fsencode(entry.name)), sorted(repeated)


def _problem(path: str) -> str:
    try:
        kind = Path(path).stat().st_mode
    except OSError as error:
        what = "a link that leads nowhere" if Path(path).is_symlink() else "can't be read"
        return f"{what} ({(error.strerror or str(error)).lower()})"
    return "" if stat.S_ISREG(kind) else "not a regular file but a pipe, socket or device"


def _unreadable(error: OSError, place: str) -> DataError:
    reason = (error.strerror or str(error)).lower()
    remedy = "give access to it, or name the files beside it one by one"
    return DataError("unreadable-input", f"the directory can't be read ({reason})", remedy=remedy, where=shown(place))


def remote(base: str, *, also_hidden: bool) -> list[Entry]:
    """List the files under a URL, sorted by name; the file itself if it is one.

    Args:
        base: without a pattern.
        also_hidden: those whose name, or a folder's, begins with `.` or `_` too.

    Raises:
        DataError: the store does not answer.
    """
    place, name = in_store(base)
    if name and place.modified(name) is not None:
        return [Entry(PurePosixPath(name).name, base)]
    names = place.below(name).names()
    kept = [each for each in names if also_hidden or not any(map(hidden, PurePosixPath(each).parts))]
    return [Entry(each, f"{base.rstrip('/')}/{each}") for each in kept]


def hidden(name: str) -> bool:
    """Return whether searches leave out a file or folder of this name."""
    return name[0] in "._"
