"""Input that is read once: standard input, pipes, and the records of a program."""

from __future__ import annotations

import shutil
import sys
import weakref
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from packtool.errors import DataError
from packtool.support.temporary import temporary_directory
from packtool.text.corpus.classify import HEAD, classify, require_told
from packtool.text.corpus.first import first_record, peek
from packtool.text.corpus.formats import FORMATS
from packtool.text.corpus.python_records import copy_records
from packtool.text.corpus.records import RECORD_BYTES, CorpusFile, Fields

STDIN = "-"
_HEAD = 1 << 20
"""Bytes to read of a stream for its first record; several times as many, should that be longer."""


def is_once(path: str) -> bool:
    """Return whether a path is standard input or a named pipe, as which a shell gives `<(command)`, too."""
    return path == STDIN or Path(path).is_fifo()


class Once:
    """An input that is read once, when the output is begun.

    Args:
        location: of a pipe; - for standard input.
        records: what a program gave, in place of standard input.
        format: as `--format` says; None for what the first bytes tell.
    """

    def __init__(self, location: str = STDIN, records: Iterable[Any] | None = None, format: str | None = None) -> None:
        self._location = location
        self._records = records
        self._format = format
        self._stream: Any = None
        self._head = b""  # what was read of the stream

    @property
    def given(self) -> bool:
        """Whether it is what a program gave."""
        return self._records is not None

    def begin(self) -> None:
        """Begin to read a stream, so that it is known to have a format.

        Raises:
            DataError: standard input is closed, or of a kind that is not read.
            UsageError: nothing says its format.
        """
        if self._records is None and not self._head:
            self._head = self._opened().read(HEAD)
            if self._format is None:
                require_told(self._location, self._head)

    def first(self) -> tuple[Mapping[str, Any] | None, str]:
        """Return the first record, None if none can be read, and what messages call the input.

        What is read of a stream for it is kept for the copy.

        Raises:
            DataError: standard input is closed, or can't be read.
            UsageError: nothing says its format.
        """
        if self._records is not None:
            first, self._records = peek(self._records)
            return first, "inputs"
        size = _HEAD
        while True:
            self._head += self._opened().read(size - len(self._head))
            with temporary_directory() as directory:
                (directory / "head").write_bytes(self._head)
                file = classify(self._location, str(directory / "head"), self._format, stream=True)
                first = first_record(file)
            format = FORMATS[file.format]
            no_more = file.fault is not None or format.plain or len(self._head) < size
            if first is None and format.table and not no_more:
                return self._first_of_whole(), self._location
            if first is not None or no_more or size >= RECORD_BYTES:
                return first, self._location
            size *= 8

    def _first_of_whole(self) -> Mapping[str, Any] | None:
        """Return the first record of a table that only its end tells; the stream goes on from a copy of all of it."""
        with temporary_directory() as directory:
            path = directory / "whole"
            first = first_record(self._copy(path))
            self._stream, self._head = path.open("rb"), b""  # which outlives the directory
        weakref.finalize(self, self._stream.close)
        return first

    def copied(self, directory: Path, number: int, fields: Fields) -> CorpusFile:
        """Return a copy in a directory, which is read in blocks like any other file.

        Args:
            number: of the input.

        Raises:
            DataError: standard input is closed.
            UsageError: nothing says its format; the records of a program are none.
        """
        if self._records is not None:
            return copy_records(self._records, directory, fields)
        target = directory / ("stdin" if self._location == STDIN else f"pipe-{number}")
        file = self._copy(target)
        if self._location != STDIN:  # which stays open
            self._opened().close()
        return msgspec.structs.replace(file, copied=True)

    def _copy(self, target: Path) -> CorpusFile:
        """Copy the stream to a file."""
        with target.open("wb") as out:
            out.write(self._head)
            shutil.copyfileobj(self._opened(), out, 1 << 20)
        return classify(self._location, str(target), self._format, stream=True)

    def _opened(self) -> Any:
        """Open the stream, once."""
        if self._stream is None and self._location != STDIN:
            self._stream = Path(self._location).open("rb")  # noqa: SIM115 - closed with this object at the latest
            weakref.finalize(self, self._stream.close)
        elif self._stream is None:
            if sys.stdin is None:
                remedy = "pipe the texts in, or name a file"
                raise DataError("unreadable-input", "standard input is closed", remedy=remedy, where=STDIN)
            self._stream = sys.stdin.buffer
        return self._stream
