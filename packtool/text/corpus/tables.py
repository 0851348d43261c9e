"""Parquet and Arrow: one document a row, in one column or several.

Parquet is read by row group, in slices of bounded size; Arrow files, as `datasets` writes them, by record batch.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

from packtool.text.corpus.arrow import ArrowFile
from packtool.text.corpus.records import Fields, RecordBatch, in_words
from packtool.text.corpus.table_columns import Columns
from packtool.text.faults import Fault

_SLICE_BYTES = 1 << 22
_SLICE_ROWS = 4096
"""Most bytes and rows of a table that are read at once."""


def open_parquet(file: io.RawIOBase) -> Any:
    """Open a file as a `pyarrow.parquet.ParquetFile`.

    Raises:
        Fault: damaged or not Parquet.
    """
    import pyarrow as pa
    from pyarrow import parquet

    try:
        return parquet.ParquetFile(file, pre_buffer=False, buffer_size=1 << 20, page_checksum_verification=True)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise _damaged("Parquet", error) from None


def _damaged(kind: str, error: Exception, lost: str = "") -> Fault:
    return Fault("damaged-file", f"not a whole {kind} file: {in_words(error)}{lost}")


def row_groups(file: io.RawIOBase) -> list[int]:
    """Return the uncompressed bytes of each row group."""
    meta = open_parquet(file).metadata
    return [meta.row_group(number).total_byte_size for number in range(meta.num_row_groups)]


def rows_before(file: io.RawIOBase, group: int) -> int:
    """Count the rows in the row groups before `group`."""
    meta = open_parquet(file).metadata
    return sum(meta.row_group(number).num_rows for number in range(group))


def group_bytes(file: io.RawIOBase, start: int, stop: int = -1) -> int:
    """Count the bytes of the file that row groups [start, stop) have, -1 for all that follow: their share of it."""
    sizes = row_groups(file)
    if stop < 0:
        stop = len(sizes)
    return file.seek(0, io.SEEK_END) * sum(sizes[start:stop]) // max(sum(sizes), 1)


def _slice_rows(rows: int, size: int) -> int:
    """Return the number of rows to read at once, of so many rows that take `size` bytes."""
    return max(1, min(_SLICE_ROWS, _SLICE_BYTES * rows // max(size, 1)))


def read_parquet(file: io.RawIOBase, fields: Fields, start: int, stop: int, limit: int) -> Iterator[RecordBatch]:
    """Read the documents of row groups [start, stop).

    Args:
        fields: to read; dots go down into structs.
        start, stop: row groups; -1 for all that follow. A file without rows may have none.
        limit: bytes of a text; longer ones are rejected.

    Raises:
        Fault: damaged (where pages have checksums, they are verified), or the column is not there or holds
            no text.
    """
    import pyarrow as pa

    parquet = open_parquet(file)
    columns = Columns(parquet.schema_arrow, fields, limit)
    meta = parquet.metadata
    share = file.seek(0, io.SEEK_END) / max(sum(row_groups(file)), 1)
    if stop < 0 or stop > meta.num_row_groups:
        stop = meta.num_row_groups
    groups = range(start, stop)
    left = sum(meta.row_group(number).num_rows for number in groups)
    for number in groups:
        group = meta.row_group(number)
        rows = _slice_rows(group.num_rows, group.total_byte_size)
        slices = parquet.iter_batches(rows, row_groups=[number], columns=columns.names, use_threads=False)
        while True:
            try:
                table = next(slices, None)
                if table is None:
                    break
                batch = columns.batch(table)
            except (pa.ArrowException, OSError) as error:
                raise _damaged("Parquet", error, f"; {left:,} rows are lost") from None
            left -= len(table)
            batch.progress = int(share * group.total_byte_size * len(table) / group.num_rows)
            yield batch


def read_arrow(file: io.RawIOBase, fields: Fields, limit: int) -> Iterator[RecordBatch]:
    """Read the documents of a file of Arrow's IPC format, or a stream of it as `datasets` writes them.

    Args:
        fields, limit: see `read_parquet`.

    Raises:
        Fault: damaged, or the column is not there or holds no text.
    """
    import pyarrow as pa

    tables = ArrowFile(file)
    columns = Columns(tables.schema, fields, limit)
    before = 0
    for table in tables:
        rows = _slice_rows(len(table), table.nbytes)
        for first in range(0, len(table), rows):
            part = table.slice(first, rows)
            try:
                batch = columns.batch(part)
            except (pa.ArrowException, OSError) as error:
                raise _damaged("Arrow", error, "; what follows is lost") from None
            after = file.tell()
            if tables.is_stream:  # all of it may have been read at once
                after = after * (first + len(part)) // len(table)
            batch.progress = max(after - before, 0)
            before += batch.progress
            yield batch
