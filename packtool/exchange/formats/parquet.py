"""Parquet, as Hugging Face `datasets` loads it: see `tables`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from packtool.exchange.columns import columns_to_read
from packtool.exchange.files import FileWriter
from packtool.exchange.formats import tables
from packtool.exchange.model import Contents, Format, Found, Part, ReadOptions, damaged
from packtool.formats.schema import ExportedFile

_ROWS = 10_000  # rows that are decoded at a time


def part(directory: Path, contents: Contents, part: Part) -> list[ExportedFile]:
    with FileWriter(directory / f"train-{part.number:05d}.parquet") as out:
        with pq.ParquetWriter(out, tables.schema(contents), compression="zstd") as writer:
            counts = tables.write(writer, contents, part)
        return [out.finish(*counts)]


def read(path: Path, options: ReadOptions) -> Iterator[Found]:
    try:
        with pq.ParquetFile(path) as file:
            columns = columns_to_read(file.schema_arrow.names, options, str(path))
            before = 0
            for batch in file.iter_batches(_ROWS, columns=columns, use_threads=False):
                yield tables.found(batch, before, columns, str(path))
                before += batch.num_rows
    except (pa.ArrowInvalid, OSError) as error:
        raise damaged(path, f"not a readable Parquet file ({error})") from None


def says_loss(path: Path, options: ReadOptions) -> bool:
    try:
        return len(columns_to_read(pq.read_schema(path).names, options, str(path))) > 1
    except (pa.ArrowInvalid, OSError):
        return False  # reading it says what is wrong


FORMAT = Format(
    name="parquet",
    summary="Parquet for datasets, TRL and axolotl: input_ids; of rows also position_ids, seq_lengths and labels",
    files="*.parquet",
    documents=True,
    boundaries=True,
    labels=True,
    loss=True,
    several_lengths=True,
    part=part,
    read=read,
    says_loss=says_loss,
)
