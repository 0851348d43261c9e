"""What a file is, by its name and its first bytes."""

from __future__ import annotations

import re
import stat
from pathlib import Path, PurePosixPath
from typing import Any

from packtool.corpus.open import (
    PARQUET_MAGIC,
    SUFFIXES,
    looks_like_utf16,
    open_raw,
    open_stream,
    sniff,
)
from packtool.corpus.records import CorpusFile, UnusableFileError
from packtool.corpus.walk import shown
from packtool.errors import DataError
from packtool.places.client import filesystem
from packtool.places.url import is_remote

FORMATS = ("jsonl", "parquet", "text", "lines", "csv", "tsv")
_BY_SUFFIX = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".parquet": "parquet",
    ".txt": "text",
}
_METADATA = {"dataset_info.json", "dataset_infos.json", "dataset_dict.json", "state.json"}
"""JSON files that other tools put beside data."""
_HEAD = 4096
_ARRAY = re.compile(rb"\s*\[\s*\{")


def suffix_format(name: str) -> str | None:
    """The format that a name's suffix tells, or None.

    >>> suffix_format("a/b.jsonl.gz"), suffix_format("README.md"), suffix_format("dataset_info.json")
    ('jsonl', None, None)
    """
    path = PurePosixPath(name)
    if path.name in _METADATA:
        return None
    return _BY_SUFFIX.get(_suffix(name))


def _suffix(name: str) -> str:
    """The last suffix that is not one of a compression."""
    path = PurePosixPath(name)
    while path.suffix.lower() in SUFFIXES:
        path = path.with_suffix("")
    return path.suffix.lower()


def classify(name: str, location: str, format: str | None) -> CorpusFile:
    """Look at a file's first bytes.

    Raises:
        DataError: it can't be read, or is not a regular file.
    """
    try:
        size, modified, inode = _stat(location)
        raw = open_raw(location)
        try:
            head = raw.read(_HEAD)
        finally:
            raw.close()
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise DataError(
            "unreadable-input", f"can't be read ({reason})", remedy="check it", where=shown(location)
        ) from None
    compression = sniff(head)
    problem = ""
    if compression:
        stream = open_stream(open_raw(location), compression)
        try:
            head = stream.read(_HEAD)
        except UnusableFileError:
            head = b""  # reading will tell, and say what is lost
        finally:
            stream.close()
    if looks_like_utf16(head):
        problem = "UTF-16 text; packtool reads UTF-8"
    kind = format or _format(name, head)
    if kind == "parquet" and compression:
        problem = f"Parquet inside {compression}; unpack it first"
    if kind == "jsonl" and _ARRAY.match(head.removeprefix(b"\xef\xbb\xbf")):
        problem = "one JSON array of objects, not JSON Lines, which has one object a line"
    return CorpusFile(shown(name), location, size, kind, compression, modified, inode, problem)


def _stat(location: str) -> tuple[int, int, int]:
    """Bytes, modification time and inode."""
    if is_remote(location):
        store, path = filesystem(location)
        info: Any = store.get_file_info(path)
        return int(info.size or 0), int(info.mtime_ns or 0), 0
    found = Path(location).stat()
    if not stat.S_ISREG(found.st_mode):
        raise DataError(
            "not-a-file",
            "a pipe or device, which can't be read twice",
            remedy="send it to standard input and give - instead",
            where=shown(location),
        )
    return found.st_size, found.st_mtime_ns, found.st_ino


def _format(name: str, head: bytes) -> str:
    if head.startswith(PARQUET_MAGIC):
        return "parquet"
    suffix = _suffix(name)
    if suffix:
        return _BY_SUFFIX.get(suffix, "text")
    return "jsonl" if head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"{" else "text"
