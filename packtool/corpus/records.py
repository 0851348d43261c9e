"""What readers deliver: batches of documents and rejected records, in input order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

import msgspec


class LongText(Protocol):
    """A document too long to hold as one `str`: iterate (as often as needed) over its consecutive pieces."""

    def __iter__(self) -> Iterator[str]: ...


Document = str | LongText


REASONS = ("invalid-json", "invalid-utf8", "lone-surrogate", "missing-text", "damaged-file")


class UnusableFileError(Exception):
    """A file (or what remains of it) that can't be read: damaged, of another kind, or without the text field.

    Args:
        code: one of REASONS.
        reason: why, in words.
    """

    def __init__(self, code: str, reason: str) -> None:
        self.code = code
        self.reason = reason
        super().__init__(code, reason)


class Reject(msgspec.Struct, frozen=True):
    """A record that can't be used.

    Attributes:
        record: its line or row, counted from 1 within the span; 0 when the rest of the file is meant.
        code: one of REASONS.
        reason: why, in words.
        raw: the record's bytes, where there are any.
    """

    record: int
    code: str
    reason: str
    raw: bytes | None = None


@dataclass
class Batch:
    """Consecutive records.

    Attributes:
        documents: usable texts, in order.
        rejects: unusable records, in order.
        records: lines (blank ones too), rows or files that were read.
        bytes: that were read for it, uncompressed.
        progress: the same as bytes of the file as it lies there.
    """

    documents: list[Document] = field(default_factory=list)
    rejects: list[Reject] = field(default_factory=list)
    records: int = 0
    bytes: int = 0
    progress: int = 0


class Span(msgspec.Struct, frozen=True):
    """A part of one file that one task reads.

    Attributes:
        file: number of the file in the corpus.
        start, stop: bytes of an uncompressed file (records that begin there belong to the span), or row groups of a
            Parquet file. `stop` is -1 for "to the end".
    """

    file: int
    start: int = 0
    stop: int = -1

    @property
    def whole(self) -> bool:
        """Whether it is the whole file."""
        return self.start == 0 and self.stop == -1


Block = tuple[Span, ...]
"""What one task reads: a part of a big file, or several small files together."""
