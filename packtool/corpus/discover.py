"""Expand what the command line names (files, directories, globs, URLs, standard input) to a list of files."""

from __future__ import annotations

import glob
import os
import re
import shutil
import sys
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path

import msgspec

from packtool.corpus import walk
from packtool.corpus.classify import classify, suffix_format
from packtool.corpus.records import CorpusFile
from packtool.corpus.walk import Entry, shown
from packtool.errors import DataError, UsageError
from packtool.places.url import is_remote

STDIN = "-"


class FoundFiles(msgspec.Struct, frozen=True):
    """The files that an argument names.

    Attributes:
        files: sorted by name.
        skipped: files in directories that are not read, since their names do not say that they hold documents.
        repeated: links to directories that are read under another name already, and so are not read again.
    """

    files: list[CorpusFile]
    skipped: list[str] = []
    repeated: list[str] = []


def find(
    location: Path | str, format: str | None = None, *, include: Sequence[str] = (), exclude: Sequence[str] = ()
) -> FoundFiles:
    """Find the files that one argument names.

    Directories are searched to their depths; hidden files and those whose name begins with `_` are left out. Of the
    others, those are read whose suffix is known, or that `include` names.

    Args:
        location: path, directory, glob or URL.
        format: as `--format` takes it, for all files; None to tell by name and content.
        include: patterns; files that match none of them are not read. A pattern without `/` is compared with the
            file's own name, others against its path under `location`.
        exclude: patterns of files not to read.

    Raises:
        DataError: nothing there, or it can't be read.
    """
    where = str(location)
    entries, searched, repeated = _remote(where) if is_remote(where) else _local(where)
    wanted, skipped = [], []
    for entry in entries:
        name = shown(entry.name)
        if (include and not _any(name, include)) or _any(name, exclude):
            continue
        if searched and not include and suffix_format(name) is None:
            skipped.append(name)
            continue
        if entry.problem:
            remedy = "remove it, or leave it out with --exclude"
            raise DataError("unreadable-input", entry.problem, remedy=remedy, where=shown(entry.location))
        wanted.append(entry)
    if not wanted:
        raise _nothing(where, bool(entries), skipped)
    files = [classify(entry.name, entry.location, format) for entry in wanted]
    return FoundFiles(files, skipped, [shown(each) for each in repeated])


def copy_stdin(directory: Path, format: str | None = None) -> CorpusFile:
    """Copy standard input to a file, so that it can be read in blocks like any other."""
    target = directory / "stdin"
    with target.open("wb") as out:
        shutil.copyfileobj(sys.stdin.buffer, out, 1 << 20)
    return classify(STDIN, str(target), format)


def _nothing(where: str, any_there: bool, skipped: Sequence[str]) -> DataError:
    remedy = "check the path"
    if skipped:
        what = f"no file has a known suffix; there are {', '.join(skipped[:5])}{', …' * (len(skipped) > 5)}"
        remedy = "name the files themselves, or give --include with a pattern, and --format if needed"
    elif any_there:
        what, remedy = "no file is left", "check --include and --exclude"
    elif is_remote(where):
        what = "no such file or directory"
    else:
        what = "an empty directory" if Path(where).is_dir() else "no file matches"
    return DataError("missing-input", what, remedy=remedy, where=shown(where))


def _local(location: str) -> tuple[list[Entry], bool, list[str]]:
    """List the entries that a local argument names, whether a directory was searched, and repeated directories."""
    path = Path(location)
    if path.is_dir():
        entries, repeated = walk.local(location)
        return entries, True, repeated
    if os.path.lexists(location):
        return [Entry(path.name, location)], False, []
    if not glob.has_magic(location):
        raise DataError("missing-input", "no such file or directory", remedy="check the path", where=shown(location))
    base = Path(*takewhile(lambda part: not glob.has_magic(part), path.parts))
    matches = sorted(glob.glob(location, recursive=True), key=os.fsencode)  # noqa: PTH207 - also absolute
    return [Entry(os.path.relpath(each, base), each) for each in matches if not Path(each).is_dir()], False, []


def _remote(location: str) -> tuple[list[Entry], bool, list[str]]:
    if not glob.has_magic(location):
        entries = walk.remote(location, also_hidden=False)
        return entries, entries != [Entry(entries[0].name, location)] if entries else True, []
    base = "/".join(takewhile(lambda part: not glob.has_magic(part), location.split("/")))
    entries = walk.remote(base, also_hidden=True)
    return [entry for entry in entries if _matches(entry.location, location)], False, []


def _any(name: str, patterns: Sequence[str]) -> bool:
    own = name.rpartition("/")[2]
    return any(_matches(name if "/" in pattern else own, pattern) for pattern in patterns)


def _matches(path: str, pattern: str) -> bool:
    # As a shell does: * and ? stay within a folder, ** does not.
    pieces = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    regex = "".join(
        pieces.get(part) or (part.replace("[!", "[^", 1) if part.startswith("[") else re.escape(part))
        for part in re.split(r"(\*\*/|\*\*|\*|\?|\[[^\]]+\])", pattern)
    )
    try:
        return re.fullmatch(regex, path, re.DOTALL) is not None
    except re.error:
        what = f"{pattern!r} is not a pattern"
        raise UsageError("bad-pattern", what, remedy="write it as for a shell: *, **, ? and [a-z]") from None
