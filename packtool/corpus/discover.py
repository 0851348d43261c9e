"""From what the command line names (files, directories, globs, URLs, standard input) to a list of files."""

from __future__ import annotations

import glob
import os
import re
import shutil
import stat
import sys
from collections.abc import Iterable
from itertools import takewhile
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec

from packtool.corpus.open import (
    PARQUET_MAGIC,
    SUFFIXES,
    filesystem,
    is_remote,
    looks_like_utf16,
    open_raw,
    open_stream,
    sniff,
)
from packtool.corpus.records import UnusableFileError
from packtool.errors import DataError

STDIN = "-"
FORMATS = ("jsonl", "parquet", "text", "lines")
_JSONL = {".jsonl", ".ndjson", ".json"}
_HEAD = 4096


class CorpusFile(msgspec.Struct, frozen=True):
    """One file of the corpus.

    Attributes:
        name: what manifest and messages call it: relative to the argument that led to it.
        location: local path or URL.
        bytes: its size as it lies there.
        format: one of FORMATS.
        compression: gzip, zstd, bz2, xz, or "".
        modified: modification time in ns; tells a resumed run that the file changed.
        problem: why it can't be read, or "".
    """

    name: str
    location: str
    bytes: int
    format: str
    compression: str = ""
    modified: int = 0
    problem: str = ""


def find(location: Path | str, format: str | None = None) -> list[CorpusFile]:
    """The files that one argument stands for, sorted by name.

    Directories are searched to their depths; hidden files and those whose name begins with `_` are left out.

    Args:
        location: path, directory, glob or URL.
        format: one of FORMATS for all files; None to tell by name and content.

    Raises:
        DataError: nothing there, or it can't be read.
    """
    where = str(location)
    return [_classify(name, path, format) for name, path in (_remote(where) if is_remote(where) else _local(where))]


def copy_stdin(directory: Path, format: str | None = None) -> CorpusFile:
    """Standard input, copied to a file so that it can be read in blocks like any other."""
    target = directory / "stdin"
    with target.open("wb") as out:
        shutil.copyfileobj(sys.stdin.buffer, out, 1 << 20)
    return _classify(STDIN, str(target), format)


def _local(location: str) -> list[tuple[str, str]]:
    """Names and paths of the local files that an argument stands for."""
    path = Path(location)
    if path.is_dir():
        found = [(str(file.relative_to(path).as_posix()), str(file)) for file in _walk(path)]
        what = "an empty directory"
    elif path.exists():
        return [(path.name, location)]
    elif glob.has_magic(location):
        base = Path(*takewhile(lambda part: not glob.has_magic(part), path.parts))
        matches = [Path(match) for match in sorted(glob.glob(location, recursive=True))]  # noqa: PTH207 - also absolute
        found = [(os.path.relpath(file, base), str(file)) for file in matches if file.is_file()]
        what = "no file matches"
    else:
        raise DataError("missing-input", "no such file or directory", remedy="check the path", where=location)
    if not found:
        raise DataError("missing-input", what, remedy="check the path", where=location)
    return found


def _walk(top: Path) -> Iterable[Path]:
    found = []
    for folder, folders, names in os.walk(top, followlinks=True):
        folders[:] = [name for name in folders if name[0] not in "._"]
        found += [Path(folder, name) for name in names if name[0] not in "._"]
    return sorted((file for file in found if file.is_file()), key=lambda file: file.relative_to(top).as_posix())


def _remote(location: str) -> list[tuple[str, str]]:
    from pyarrow import fs

    pattern = location if glob.has_magic(location) else None
    base = "/".join(takewhile(lambda part: not glob.has_magic(part), location.split("/")))
    store, path = filesystem(base)
    try:
        info = store.get_file_info(path)
        if info.type == fs.FileType.File:
            return [(PurePosixPath(path).name, location)]
        selector = fs.FileSelector(path, recursive=True, allow_not_found=True)
        selected = store.get_file_info(selector)
    except OSError as error:
        what = str(error).splitlines()[0].rstrip(".")
        raise DataError("store-unreachable", what, remedy="check the URL and the network", where=location) from None
    prefix = base.rstrip("/")
    found = []
    for entry in sorted(selected, key=lambda entry: str(entry.path)):
        name = str(PurePosixPath(entry.path).relative_to(path))
        hidden = any(part[0] in "._" for part in PurePosixPath(name).parts)
        if entry.type != fs.FileType.File or (hidden and not pattern):
            continue
        url = f"{prefix}/{name}"
        if pattern is None or _matches(url, pattern):
            found.append((name, url))
    if not found:
        raise DataError("missing-input", "no such file or directory", remedy="check the URL", where=location)
    return found


def _matches(url: str, pattern: str) -> bool:
    # As a shell does: * and ? stay within a folder, ** does not.
    pieces = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    regex = "".join(
        pieces.get(part) or (part if part.startswith("[") else re.escape(part))
        for part in re.split(r"(\*\*/|\*\*|\*|\?|\[[^\]]+\])", pattern)
    )
    return re.fullmatch(regex, url) is not None


def _classify(name: str, location: str, format: str | None) -> CorpusFile:
    """Look at a file's first bytes."""
    try:
        size, modified = _stat(location)
        raw = open_raw(location)
        try:
            head = raw.read(_HEAD)
        finally:
            raw.close()
    except OSError as error:
        reason = error.strerror or str(error)
        raise DataError("unreadable-input", f"can't be read ({reason})", remedy="check it", where=location) from None
    compression = sniff(head)
    problem = ""
    if compression:
        stream = open_stream(location, compression)
        try:
            head = stream.read(_HEAD)
        except UnusableFileError as error:
            head, problem = b"", error.reason
        finally:
            stream.close()
    if looks_like_utf16(head):
        problem = "UTF-16 text; packtool reads UTF-8"
    kind = format or _format(name, head)
    if kind == "parquet" and compression:
        problem = f"Parquet inside {compression}; unpack it first"
    return CorpusFile(name, location, size, kind, compression, modified, problem)


def _stat(location: str) -> tuple[int, int]:
    if is_remote(location):
        store, path = filesystem(location)
        info: Any = store.get_file_info(path)
        return int(info.size or 0), int(info.mtime_ns or 0)
    found = Path(location).stat()
    if not stat.S_ISREG(found.st_mode):
        raise DataError(
            "not-a-file",
            "a pipe or device, which can't be read twice",
            remedy="send it to standard input and give - instead",
            where=location,
        )
    return found.st_size, found.st_mtime_ns


def _format(name: str, head: bytes) -> str:
    if head.startswith(PARQUET_MAGIC):
        return "parquet"
    path = PurePosixPath(name)
    while path.suffix in SUFFIXES:
        path = path.with_suffix("")
    if path.suffix == ".parquet":
        return "parquet"
    if path.suffix in _JSONL:
        return "jsonl"
    if path.suffix:
        return "text"
    return "jsonl" if head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"{" else "text"
