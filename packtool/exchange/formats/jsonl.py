"""JSON Lines of token ids: an object with a list of ids in each line, and the columns of `tables` beside it."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from packtool.errors import DataError
from packtool.exchange import whole_documents
from packtool.exchange.files import FileWriter
from packtool.exchange.formats import tables
from packtool.exchange.model import Contents, Part, ReadDocuments, ReadOptions, damaged
from packtool.formats.schema import ExportedFile
from packtool.support.decoding import from_json
from packtool.text.corpus.decompress import SUFFIXES, open_stream, sniff
from packtool.text.corpus.delimited import RawStream
from packtool.text.corpus.token_columns import KNOWN
from packtool.text.faults import Fault

_LARGEST = 1 << 63


def part(directory: Path, contents: Contents, part: Part) -> list[ExportedFile]:
    encoder = msgspec.json.Encoder()
    with FileWriter(directory / f"train-{part.number:05d}.jsonl") as out:
        counts = tables.write(lambda batch: out.write(encoder.encode_lines(batch.to_pylist())), contents, part)
        return [out.finish(*counts)]


def read(path: Path, options: ReadOptions) -> Iterator[ReadDocuments]:
    """Read the documents of a file, plain or compressed."""
    return whole_documents.documents(_records(path, options), options)


def _records(path: Path, options: ReadOptions) -> Iterator[whole_documents.ForeignRow]:
    try:
        with path.open("rb") as raw:
            kind = sniff(raw.read(16))
            if not kind and path.suffix in SUFFIXES and path.stat().st_size:
                raise damaged(path, f"not compressed, as {path.suffix} says it is")
            raw.seek(0)
            with closing(io.BufferedReader(RawStream(open_stream(raw, kind)), 1 << 20)) as lines:
                for number, line in enumerate(lines, 1):
                    if line.strip():
                        yield _record(line, options, f"{path}:{number}")
    except Fault as fault:
        raise damaged(path, fault.what) from None


def _record(line: bytes, options: ReadOptions, where: str) -> whole_documents.ForeignRow:
    try:
        record = from_json(line, dict[str, Any])
    except ValueError as error:
        raise DataError("bad-ids", f"not a JSON object ({error})", remedy="fix the line", where=where) from None
    name = whole_documents.id_column(record, options, where)
    ids = record[name]
    if not isinstance(ids, list) or not all(type(each) is int and 0 <= each < _LARGEST for each in ids):
        raise DataError("bad-ids", "not a list of token ids", remedy="fix the line, or give --field", where=where)
    found = {}
    for other, values in record.items():
        if options.ids_only or other == name or values is None:
            continue
        if not whole_documents.beside(other, is_list=isinstance(values, list)):
            continue
        if _are_numbers(values):
            found[other] = _array(values)
        elif other in KNOWN:
            raise whole_documents.bad_mask(f"{other} is not a list of numbers", where)
    return whole_documents.ForeignRow(where, _array(ids), found)


def _are_numbers(values: Any) -> bool:
    if not isinstance(values, list):
        return False
    return all(isinstance(value, int | float) and abs(value) < _LARGEST for value in values)


def _array(values: list[Any]) -> np.ndarray[Any, Any]:
    return np.array(values) if values else np.empty(0, np.int64)


FORMAT = tables.table_format(
    name="jsonl",
    readers="whatever reads JSON Lines",
    summary="JSON Lines: objects with the columns of `parquet`",
    files="*.jsonl*",
    part=part,
    read=read,
)
