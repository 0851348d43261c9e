"""Parquet: one document a row; divided at row groups."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import numpy as np

from packtool.text.corpus.file_bytes import open_raw
from packtool.text.corpus.records import CorpusFile, Fields, RecordBatch, Span
from packtool.text.corpus.table_columns import Columns
from packtool.text.corpus.tables import damaged, first_row, is_looked_at, row_like, slice_rows
from packtool.text.corpus.text_format import Division, TextFormat
from packtool.text.faults import Fault


def _open(file: io.RawIOBase) -> Any:
    """Open a file as a `pyarrow.parquet.ParquetFile`."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        return parquet.ParquetFile(file, pre_buffer=False, buffer_size=1 << 20, page_checksum_verification=True)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise damaged("Parquet", error) from None


def _row_groups(file: io.RawIOBase) -> list[int]:
    """Return the uncompressed bytes of each row group; of a damaged file, its size alone."""
    try:
        meta = _open(file).metadata
    except Fault:
        return [file.seek(0, io.SEEK_END)]
    return [meta.row_group(number).total_byte_size for number in range(meta.num_row_groups)]


def read_parquet(
    file: io.RawIOBase, fields: Fields, limit: int, start: int = 0, stop: int = -1
) -> Iterator[RecordBatch]:
    """Read the documents of row groups [start, stop).

    Args:
        fields: to read; dots go down into structs.
        limit: bytes of a text; longer ones are rejected.
        start, stop: row groups; -1 for all that follow. A file without rows may have none.

    Raises:
        Fault: damaged (where pages have checksums, they are verified), or the column is not there or holds
            no text.
    """
    import pyarrow as pa

    parquet = _open(file)
    columns = Columns(parquet.schema_arrow, fields, limit)
    meta = parquet.metadata
    share = file.seek(0, io.SEEK_END) / max(sum(_row_groups(file)), 1)
    if stop < 0 or stop > meta.num_row_groups:
        stop = meta.num_row_groups
    groups = range(start, stop)
    left = sum(meta.row_group(number).num_rows for number in groups)
    for number in groups:
        group = meta.row_group(number)
        # Not the bytes of the columns that are read: to ask a damaged file for a column may end the process.
        rows = slice_rows(group.num_rows, group.total_byte_size)
        slices = parquet.iter_batches(rows, row_groups=[number], columns=columns.names, use_threads=False)
        while True:
            try:
                table = next(slices, None)
                if table is None:
                    break
                batch = columns.batch(table)
            except (pa.ArrowException, OSError) as error:
                raise damaged("Parquet", error, f"; {left:,} rows are lost") from None
            left -= len(table)
            batch.progress = int(share * group.total_byte_size * len(table) / group.num_rows)
            yield batch


def _first(file: Any) -> dict[str, Any] | None:
    opened = _open(file)
    schema = opened.schema_arrow
    names = [field.name for field in schema if is_looked_at(field.type)]
    if not names:  # to ask a damaged file for no column may end the process
        return row_like(schema) if opened.metadata.num_rows else None
    return first_row(schema, opened.iter_batches(1, columns=names, use_threads=False))


def _groups_of(file: CorpusFile) -> list[int]:
    with closing(open_raw(file.location)) as raw:
        return _row_groups(raw)


def _starts(file: CorpusFile, size: int) -> list[int]:
    """Return the first row group of each span; a span ends once it holds `size` uncompressed bytes."""
    starts = [0]
    held = 0
    for group, group_bytes in enumerate(_groups_of(file)):
        if held >= size:
            starts.append(group)
            held = 0
        held += group_bytes
    return starts


def _place(file: CorpusFile, offset: int, size: int) -> tuple[int, int]:
    """Return the row group at an offset of a file, in proportion to the groups' bytes."""
    ends = np.cumsum(_groups_of(file))
    group = int(np.searchsorted(ends[:-1], offset / file.bytes * ends[-1], side="right"))
    return group, group + 1


def _rows_before(file: io.RawIOBase, group: int) -> int:
    """Count the rows in the row groups before `group`."""
    meta = _open(file).metadata
    return sum(meta.row_group(number).num_rows for number in range(group))


def _group_bytes(file: io.RawIOBase, span: Span) -> int:
    """Count the bytes of the file that the row groups of a span have: their share of it."""
    groups = _row_groups(file)
    stop = len(groups) if span.stop < 0 else span.stop
    return file.seek(0, io.SEEK_END) * sum(groups[span.start : stop]) // max(sum(groups), 1)


FORMAT = TextFormat(
    name="parquet",
    suffixes=(".parquet", ".pq"),
    other="",
    magic=re.compile(b"PAR1"),
    read=read_parquet,
    first=_first,
    division=Division(starts=_starts, place=_place, before=_rows_before, size=_group_bytes),
    table=True,
)
