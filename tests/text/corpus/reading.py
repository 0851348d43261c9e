"""Files written, found and read in one line each."""

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from packtool.text.corpus import discover
from packtool.text.corpus.read import SpanReader
from packtool.text.corpus.records import CorpusFile, Fields, RecordBatch, Reject, Span

LINES = b"".join(b'{"text": "document %d"}\n' % number for number in range(20_000))


class Dribble(io.BytesIO):
    """Gives a few bytes at a time."""

    def __init__(self, data: bytes, step: int) -> None:
        super().__init__(data)
        self._step = step

    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(min(size or 1, self._step))


def put(folder: Path, *names: str) -> Path:
    """Write a record to each of these files of a directory, and return the directory."""
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text('{"text": "a"}\n')
    return folder


def _delimited(path: Path, records: list[dict[str, Any]], delimiter: str) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, records[0], delimiter=delimiter)
        writer.writeheader()
        writer.writerows(records)


def _arrow(path: Path, records: list[dict[str, Any]]) -> None:
    table = pa.Table.from_pylist(records)
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as out:
        out.write_table(table)


WRITERS: dict[str, Callable[[Path, list[dict[str, Any]]], Any]] = {
    "jsonl": lambda path, records: path.write_text("".join(json.dumps(record) + "\n" for record in records)),
    "json": lambda path, records: path.write_text(json.dumps(records, indent=2)),
    "parquet": lambda path, records: parquet.write_table(pa.Table.from_pylist(records), path),
    "arrow": _arrow,
    "csv": lambda path, records: _delimited(path, records, ","),
    "tsv": lambda path, records: _delimited(path, records, "\t"),
}
"""What writes records in each format that has them."""


def write(path: Path, records: list[dict[str, Any]]) -> Path:
    """Write records in the format that the suffix says, by default lines of JSON."""
    WRITERS.get(path.suffix[1:], WRITERS["jsonl"])(path, records)
    return path


def find(location: Path | str, format: str | None = None) -> list[CorpusFile]:
    return discover.discover_files(location, format).files


def read(file: CorpusFile, span: Span, text_field: str, **options: Any) -> Iterator[RecordBatch]:
    return iter(SpanReader(file, span, Fields(text_field), **options))


def together(batches: Iterable[RecordBatch]) -> tuple[list[Any], list[tuple[int, str, str]]]:
    """All documents, and of each reject the number that its record has in the file, 0 for none, its code and reason."""
    documents: list[Any] = []
    rejects: list[tuple[int, str, str]] = []
    before = 0
    for batch in batches:
        documents += batch.documents
        for reject in batch.rejects:
            number = before + reject.record if reject.record else 0
            rejects.append((number, reject.fault.code, reject.fault.what))
        before += batch.records
    return documents, rejects


def only_batch(path: Path, text_field: str = "text", **options: Any) -> RecordBatch:
    """What is read of a file that is read at once."""
    [file] = find(path)
    [batch] = read(file, Span(0), text_field, **options)
    return batch


def salvage(path: Path, **options: bool) -> tuple[list[str], list[Reject], str]:
    """What is read of a damaged file: its texts, what is rejected, and its checksum."""
    [file] = find(path)
    reader = SpanReader(file, Span(0), Fields(), **options)
    batches = list(reader)
    texts = ["".join(text) for batch in batches for text in batch.documents]
    return texts, [reject for batch in batches for reject in batch.rejects], reader.digest
