"""Files found and read in one line each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from packtool.text.corpus import discover
from packtool.text.corpus.read import SpanReader
from packtool.text.corpus.records import CorpusFile, Fields, RecordBatch, Reject, Span


def find(location: Path | str, format: str | None = None) -> list[CorpusFile]:
    return discover.find(location, format).files


def read(file: CorpusFile, span: Span, text_field: str, **options: Any) -> Iterator[RecordBatch]:
    return iter(SpanReader(file, span, Fields(text_field), **options))


def salvage(path: Path, **options: bool) -> tuple[list[str], list[Reject], str]:
    """What is read of a damaged file: its texts, what is rejected, and its checksum."""
    [file] = find(path)
    reader = SpanReader(file, Span(0), Fields(), **options)
    batches = list(reader)
    texts = ["".join(text) for batch in batches for text in batch.documents]
    return texts, [reject for batch in batches for reject in batch.rejects], reader.digest
