"""JSON Lines: one record a line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from packtool.text.corpus.formats.json import over_lines
from packtool.text.corpus.jsonl import read_jsonl
from packtool.text.corpus.records import RECORD_BYTES, first_object
from packtool.text.corpus.text import BY_LINES, LongLine, line_chunks
from packtool.text.corpus.text_format import TextFormat

_LINES = 1000
"""Most lines of a file to look at, should the first of them hold no record."""


def _first(stream: Any) -> dict[str, Any] | None:
    return first_object(_lines(stream))


def _lines(stream: Any) -> Iterator[bytes]:
    """Yield the first lines of a stream."""
    chunk = next(line_chunks(stream, limit=RECORD_BYTES), b"")
    if not isinstance(chunk, LongLine):
        yield from bytes(chunk).split(b"\n", _LINES)[:_LINES]


FORMAT = TextFormat(
    name="jsonl",
    suffixes=(".jsonl", ".ndjson", ".json", ".jsonlines", ".jl", ".ldjson"),
    begins=b"{[",
    told_by=lambda head: "json" if over_lines(head) else "jsonl",
    read=read_jsonl,
    first=_first,
    division=BY_LINES,
)
