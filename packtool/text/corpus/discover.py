"""Expand what the command line names (files, directories, globs, URLs, standard input) to a list of files.

Each file is listed once, in an order that does not depend on the machine.
"""

from __future__ import annotations

import fnmatch
import glob
import os
import re
import shlex
import stat
from collections.abc import Sequence
from contextlib import closing
from itertools import takewhile
from operator import attrgetter
from pathlib import Path, PurePosixPath

import msgspec

from packtool.errors import DataError, UsageError
from packtool.places.url import is_remote
from packtool.support.decoding import from_json
from packtool.text.corpus.catalogues import is_catalogue, table_above, tables_in
from packtool.text.corpus.classify import classify
from packtool.text.corpus.file_bytes import in_store, open_raw
from packtool.text.corpus.formats import by_suffix
from packtool.text.corpus.records import CorpusFile, shown

_STATE = "state.json"
_SAVED = ("dataset_dict.json", "dataset_info.json", _STATE)
"""Files that `save_to_disk` writes beside the data."""


class FoundFiles(msgspec.Struct, frozen=True):
    """The files that an argument names.

    Attributes:
        files: sorted by name.
        skipped: files in directories that are not read: their names do not say that they hold documents, or begin with
            a dot or an underscore, as those of their folders may; of these, those whose suffix is known.
        repeated: links to directories that are read under another name already, and so are not read again.
        patterns: that match something there.
    """

    files: list[CorpusFile]
    skipped: list[str] = []
    repeated: list[str] = []
    patterns: set[str] = set()


class _Entry(msgspec.Struct, frozen=True):
    """One thing that is not a directory."""

    name: str  # relative to the place that was searched
    location: str  # local path or URL
    problem: str = ""  # why it can't be read: not a regular file, or a link to nothing
    hidden: bool = False  # searches leave it out


class _Listed(msgspec.Struct, frozen=True):
    """The files where an argument points, sorted by name; `searched` if it names a directory, or a URL like one."""

    entries: list[_Entry]
    searched: bool = False
    repeated: list[str] = []


def discover_files(
    location: Path | str, format: str | None = None, *, include: Sequence[str] = (), exclude: Sequence[str] = ()
) -> FoundFiles:
    """Find the files that one argument names.

    Directories are searched to their depths; hidden files and those whose name begins with `_` are left out. Of the
    others, those are read whose suffix is known, or that `include` names.

    Args:
        location: path, directory, glob or URL.
        format: as `--format` takes it, for all files; None for what their suffixes say.
        include: patterns; files that match none of them are not read. A pattern without `/` is compared with the
            file's own name, others with its path, under `location` or from where that is given.
        exclude: patterns of files not to read.

    Raises:
        DataError: nothing there, or it can't be read.
    """
    where = str(location)
    listed = _remote(where) if is_remote(where) else _local(where)
    saved = saved_files(listed.entries) if listed.searched else SavedFiles()
    wanted: list[_Entry] = []
    skipped: list[str] = []
    used: set[str] = set()
    for entry in listed.entries:
        name = shown(entry.name)
        taken = matching(entry, include)
        out = matching(entry, exclude)
        used |= taken | out
        if (include and not taken) or out:
            continue
        if is_catalogue(name):
            continue
        if entry.hidden:
            if by_suffix(name) is not None:
                skipped.append(name)
            continue
        if entry.name in saved.known and PurePosixPath(name).name not in include:
            continue
        if (listed.searched and not include and by_suffix(name) is None) or entry.name in saved.others:
            skipped.append(name)
            continue
        if entry.problem:
            remedy = "remove it, or leave it out with --exclude"
            raise DataError("unreadable-input", entry.problem, remedy=remedy, where=shown(entry.location))
        wanted.append(entry)
    if not wanted:
        raise _nothing(where, bool(listed.entries), skipped)
    if format is None:
        _require_no_table(where, listed, wanted)
    files = [classify(entry.name, entry.location, format) for entry in wanted]
    return FoundFiles(files, skipped, list(map(shown, listed.repeated)), used)


def _require_no_table(where: str, listed: _Listed, wanted: Sequence[_Entry]) -> None:
    """Refuse files of a table whose catalogue says which of their rows count."""
    for table in tables_in(entry.name for entry in listed.entries):
        if not table or any(entry.name.startswith(f"{table}/") for entry in wanted):
            raise _of_table(f"{where.rstrip('/')}/{table}".rstrip("/"))
    if is_remote(where):
        return
    table_of = table_above(map(attrgetter("location"), wanted))
    if table_of is not None:
        raise _of_table(str(table_of))


def _of_table(place: str) -> DataError:
    what = "a table of Delta, Iceberg, Hudi or Paimon: its files also hold rows that were deleted"
    remedy = "export its rows to Parquet first, and give these; --format=parquet reads all rows nevertheless"
    return DataError("foreign-folder", what, remedy=remedy, where=shown(place))


def _remedy(location: str) -> str:
    """Return what to do about a path where nothing is."""
    literal = location.replace("[", "[[]")
    if literal != location and (Path(location).exists() or glob.glob(literal, recursive=True)):  # noqa: PTH207 - also absolute
        return f"brackets are a pattern; for these themselves, write {shlex.quote(literal)}"
    if re.fullmatch(r"[\w-][\w.-]*/[\w.-]+", location) and not Path(location).parent.exists():
        return f"check the path; for a dataset of the Hugging Face hub, give hf://datasets/{location}"
    return "check the path"


def _nothing(where: str, any_there: bool, skipped: Sequence[str]) -> DataError:
    remedy = "check the path"
    if skipped:
        what = f"no file has a known name and suffix; there are {', '.join(skipped[:5])}{', …' * (len(skipped) > 5)}"
        remedy = "name the files themselves, or give --include with a pattern, and --format if needed"
    elif any_there:
        what, remedy = "no file is left", "check --include and --exclude"
    elif is_remote(where):
        what = "no such file or directory"
    else:
        what, remedy = "an empty directory" if Path(where).is_dir() else "no file matches", _remedy(where)
    return DataError("missing-input", what, remedy=remedy, where=shown(where))


def _local(location: str) -> _Listed:
    path = Path(location)
    if path.is_dir():
        return _below(location)
    if os.path.lexists(location):
        return _Listed([_Entry(path.name, location)])
    if not glob.has_magic(location):
        raise DataError("missing-input", "no such file or directory", remedy=_remedy(location), where=shown(location))
    base = Path(*takewhile(lambda part: not glob.has_magic(part), path.parts))
    matches = sorted(glob.glob(location, recursive=True), key=os.fsencode)  # noqa: PTH207 - also absolute
    return _Listed([_Entry(os.path.relpath(path, base), path) for path in matches if not Path(path).is_dir()])


def _below(top: str) -> _Listed:
    """List the files under a local directory. Links are followed; each directory is entered once, by its own name
    rather than by a link's.
    """
    entries: list[_Entry] = []
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
                inside = sorted(scanned, key=lambda entry: os.fsencode(entry.name), reverse=True)
        except OSError as error:
            what = f"the directory can't be read ({_reason(error)})"
            remedy = "give access to it, or name the other files one by one"
            raise DataError("unreadable-input", what, remedy=remedy, where=shown(folder)) from None
        for entry in inside:
            name = os.path.relpath(entry.path, top)
            hidden = _is_hidden(name)
            if not Path(entry.path).is_dir():
                entries.append(_Entry(name, entry.path, "" if hidden else _problem(entry.path), hidden))
            elif not hidden or not entry.is_symlink():
                (links if entry.is_symlink() else folders).append(entry.path)
        links.sort(key=os.fsencode, reverse=True)
    entries.sort(key=lambda entry: os.fsencode(entry.name))
    return _Listed(entries, searched=True, repeated=sorted(repeated))


def _problem(path: str) -> str:
    try:
        kind = Path(path).stat().st_mode
    except OSError as error:
        what = "a link that leads nowhere" if Path(path).is_symlink() else "can't be read"
        return f"{what} ({_reason(error)})"
    return "" if stat.S_ISREG(kind) else "not a regular file but a pipe, socket or device"


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()


def _remote(location: str) -> _Listed:
    """List the files under a URL or matching it; the file itself if it is a file."""
    if glob.has_magic(location):
        base = "/".join(takewhile(lambda part: not glob.has_magic(part), location.split("/")))
        # Hidden files, too, where the pattern matches them.
        return _Listed([entry for entry in _below_url(base) if _matches(entry.location, location)])
    place, name = in_store(location)
    if name and place.modified(name) is not None:
        return _Listed([_Entry(PurePosixPath(name).name, location)])
    entries = _below_url(location)
    told = [msgspec.structs.replace(entry, hidden=_is_hidden(entry.name)) for entry in entries]
    return _Listed(told, searched=True)


def _below_url(base: str) -> list[_Entry]:
    place, name = in_store(base)
    return [_Entry(relative, f"{base.rstrip('/')}/{relative}") for relative in place.below(name).names()]


def _is_hidden(name: str) -> bool:
    """Return whether searches leave out a file: its name, or that of a folder it lies in, begins with a dot or an
    underscore."""
    return any(part[0] in "._" for part in PurePosixPath(name).parts)


class SavedFiles(msgspec.Struct, frozen=True):
    """Files in folders that `save_to_disk` of `datasets` wrote, or that lie in its cache."""

    known: frozenset[str] = frozenset()  # files that describe the others
    others: frozenset[str] = frozenset()  # .arrow files that are no data of theirs, such as results that it keeps


def saved_files(entries: Sequence[_Entry]) -> SavedFiles:
    """Sort the files of `datasets`: the state.json of a folder says which of its .arrow files are the data.

    Raises:
        DataError: one of these is not there.
    """
    known: set[str] = set()
    others = {entry.name for entry in entries if fnmatch.fnmatch(PurePosixPath(entry.name).name, "cache-*.arrow")}
    names = {entry.name for entry in entries}
    for entry in entries:
        folder = PurePosixPath(entry.name).parent
        if PurePosixPath(entry.name).name != _STATE:
            continue
        data = _data_files(entry.location)
        if data is None:
            continue
        beside = {name for name in names if PurePosixPath(name).parent == folder}
        known |= {name for name in beside if PurePosixPath(name).name in _SAVED} | {str(folder.parent / _SAVED[0])}
        data = {str(folder / name) for name in data}
        missing = data - beside
        if missing:
            what = f"it names {min(missing)}, which is not there"
            raise DataError("missing-input", what, remedy="save the dataset again", where=shown(entry.location))
        others.update(fnmatch.filter(beside - data, "*.arrow"))
    return SavedFiles(frozenset(known), frozenset(others))


def _data_files(location: str) -> set[str] | None:
    """Return the files of data that a state.json names; None if `datasets` did not write it."""
    try:
        raw = open_raw(location)
        with closing(raw):
            state = from_json(raw.read(), _State)
    except (OSError, ValueError):
        return None
    return {file.filename for file in state.files}


class _File(msgspec.Struct):
    """A file of data."""

    filename: str


class _State(msgspec.Struct):
    """What is read of a state.json."""

    files: list[_File] = msgspec.field(name="_data_files")


def matching(entry: _Entry, patterns: Sequence[str]) -> set[str]:
    """Return the patterns that match a file: its own name, or its path, below the input or as messages have it."""
    own = shown(PurePosixPath(entry.name).name)
    paths = [path.removeprefix("./") for path in (shown(entry.name), shown(entry.location))]
    found: set[str] = set()
    for pattern in patterns:
        wanted = pattern.removeprefix("./")
        names = paths if "/" in pattern else [own]
        if wanted in names or any(_matches(name, wanted) for name in names):
            found.add(pattern)
    return found


def _matches(path: str, pattern: str) -> bool:
    # As a shell does: * and ? stay within a folder, ** does not.
    pieces = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    regex = ""
    for part in re.split(r"(\*\*/|\*\*|\*|\?|\[[^\]]+\])", pattern):
        if part in pieces:
            regex += pieces[part]
        elif part.startswith("["):
            regex += part.replace("[!", "[^", 1)
        else:
            regex += re.escape(part)
    try:
        return re.fullmatch(regex, path, re.DOTALL) is not None
    except re.error:
        what = f"{pattern!r} is not a pattern"
        raise UsageError("bad-pattern", what, remedy="write it as for a shell: *, **, ? and [a-z]") from None
