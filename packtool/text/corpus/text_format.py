"""What is known of a format of input: how its files are named, opened and divided, and how their records come."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from packtool.text.corpus.records import CorpusFile, RecordBatch, Span


@dataclass(frozen=True, kw_only=True)
class Division:
    """How the files of a format are divided into spans. Read alone, these must give the documents of the whole.

    A span is a start and a stop, in a unit of the format's own. Compressed files are not divided.
    """

    starts: Callable[[CorpusFile, int], list[int]]  # (file, bytes of a span, about) to where each span starts, 0 first
    place: Callable[[CorpusFile, int, int], tuple[int, int]]  # (file, offset, bytes) to a span there, to look at
    before: Callable[[Any, int], int]  # (open file, start) to the number of records before it
    size: Callable[[Any, Span], int] | None = None  # (open file, span) to its bytes; None where the unit is a byte


@dataclass(frozen=True, kw_only=True)
class TextFormat:
    """A format that `--format` takes."""

    name: str
    read: Callable[..., Iterator[RecordBatch]]
    """(stream, fields, limit) to batches of its documents; with a division (…, start, stop), too."""

    suffixes: tuple[str, ...] = ()  # of names of files, in small letters, below those of compressions
    magic: re.Pattern[bytes] | None = None  # first bytes that files of this format have, and no others
    other: str = "text"  # the format that a file of this suffix may have instead; "" if there is none
    begins: bytes = b""  # characters of which one is the first of a stream of this format, and of no other's
    told_by: Callable[[bytes], str] | None = None
    """(first bytes) to the name of the format, where several share the suffixes."""

    first: Callable[[Any], Mapping[str, Any] | None] | None = None
    """(stream) to the first record, None if there is none; None for plain text, which has no records."""

    division: Division | None = None
    table: bool = False  # opened at any place, and compressed inside, so that no stream can be read
    whole: bool = False  # a file is one document, which is held in memory

    @property
    def read_as(self) -> str:
        """Say how a file of this format was read, and what else it may be."""
        if not self.other:
            return f"read as {self.name}"
        return f"read as {self.name}; or --format={self.other}"

    @property
    def plain(self) -> bool:
        """Whether it is text without records."""
        return self.first is None
