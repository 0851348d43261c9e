"""Read one span of one file, whatever its format."""

from __future__ import annotations

from collections.abc import Iterator

import xxhash

from packtool.corpus.discover import CorpusFile
from packtool.corpus.jsonl import read_jsonl
from packtool.corpus.lines import lines_before
from packtool.corpus.open import DecompressedStream, open_raw, open_stream
from packtool.corpus.parquet import read_parquet, rows_before
from packtool.corpus.records import Batch, Reject, Span, UnusableFileError
from packtool.corpus.text import read_file, read_lines


def read(file: CorpusFile, span: Span, text_field: str) -> Iterator[Batch]:
    """Batches of a span's documents and rejects, in order.

    A file that turns out to be damaged gives the documents before the damage, then one reject of record 0.
    """
    try:
        if file.problem:
            raise UnusableFileError("damaged-file", file.problem)
        for batch in _read(file, span, text_field):
            batch.progress = batch.progress or batch.bytes
            yield batch
    except UnusableFileError as error:
        yield Batch(rejects=[Reject(0, error.code, error.reason)])


def _read(file: CorpusFile, span: Span, text_field: str) -> Iterator[Batch]:
    if file.format == "text":
        yield from read_file(lambda: open_stream(file.location, file.compression))
        return
    if file.format == "parquet":
        raw = open_raw(file.location)
        try:
            yield from read_parquet(raw, text_field, span.start, span.stop)
        finally:
            raw.close()
        return
    stream = open_stream(file.location, file.compression)
    try:
        if file.format == "lines":
            batches = read_lines(stream, span.start, span.stop)
        else:
            batches = read_jsonl(stream, text_field, span.start, span.stop)
        before = 0
        for batch in batches:
            if isinstance(stream, DecompressedStream):
                at = stream.compressed_position()
                batch.progress, before = at - before, at
            yield batch
    finally:
        stream.close()


def records_before(file: CorpusFile, span: Span) -> int:
    """Lines or rows of the file before the span: reads what lies before it."""
    if not span.start:
        return 0
    raw = open_raw(file.location)
    try:
        return rows_before(raw, span.start) if file.format == "parquet" else lines_before(raw, span.start)
    finally:
        raw.close()


def file_digest(file: CorpusFile) -> str:
    """xxh3-128 (hex) of a file as it lies there."""
    hashed = xxhash.xxh3_128()
    raw = open_raw(file.location)
    try:
        while data := raw.read(1 << 22):
            hashed.update(data)
    finally:
        raw.close()
    return hashed.hexdigest()
