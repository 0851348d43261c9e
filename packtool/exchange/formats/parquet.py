"""Parquet, as Hugging Face `datasets` loads it: see `tables`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from packtool.exchange.files import FileWriter
from packtool.exchange.formats import tables
from packtool.exchange.model import Contents, Part, ReadDocuments, ReadOptions, damaged
from packtool.formats.schema import ExportedFile
from packtool.text.corpus.records import in_words

_ROWS = 10_000  # rows that are decoded at a time


def part(directory: Path, contents: Contents, part: Part) -> list[ExportedFile]:
    with FileWriter(directory / f"train-{part.number:05d}.parquet") as out:
        with pq.ParquetWriter(out, tables.schema(contents), compression="zstd") as writer:
            counts = tables.write(writer.write_batch, contents, part)
        # In a directory of their own: readers of Parquet take every file of a directory for Parquet.
        return [out.finish(*counts, directory="data/")]


def inside(directory: Path) -> list[Path] | None:
    """List the files of a directory that other tools wrote; None where there is none."""
    return sorted(directory.glob("*.parquet")) or None


def read(path: Path, options: ReadOptions) -> Iterator[ReadDocuments]:
    return tables.documents(_batches(path, options), options, path)


def _batches(path: Path, options: ReadOptions) -> Iterator[pa.RecordBatch]:
    """Decode the columns that are needed, some rows at a time."""
    try:
        with pq.ParquetFile(path, pre_buffer=False, page_checksum_verification=True) as file:
            columns = tables.columns_to_read(file.schema_arrow, options, path)
            yield from file.iter_batches(_ROWS, columns=columns, use_threads=False)
    except tables.ERRORS as error:
        raise damaged(path, f"not a readable Parquet file ({in_words(error)})") from None


FORMAT = tables.table_format(
    name="parquet",
    readers="Transformers Trainer, TRL, Axolotl, verl",
    summary="Parquet: `input_ids`; of rows also `position_ids`, `seq_lengths` and `labels`",
    files="data/*.parquet",
    inside=inside,
    part=part,
    read=read,
)
