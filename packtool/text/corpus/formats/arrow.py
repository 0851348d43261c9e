"""Arrow: one document a row, in files of its IPC format, and streams of it as `datasets` writes them."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from typing import Any

from packtool.text.corpus.arrow import ArrowFile
from packtool.text.corpus.records import Fields, RecordBatch
from packtool.text.corpus.table_columns import Columns
from packtool.text.corpus.tables import damaged, first_row, slice_rows
from packtool.text.corpus.text_format import TextFormat


def read_arrow(file: io.RawIOBase, fields: Fields, limit: int) -> Iterator[RecordBatch]:
    """Read the documents of a file of Arrow's IPC format, or a stream of it as `datasets` writes them.

    Args:
        fields: to read; dots go down into structs.
        limit: bytes of a text; longer ones are rejected.

    Raises:
        Fault: damaged, or the column is not there or holds no text.
    """
    import pyarrow as pa

    tables = ArrowFile(file)
    columns = Columns(tables.schema, fields, limit)
    before = 0
    for table in tables:
        rows = slice_rows(len(table), table.nbytes)
        for first in range(0, len(table), rows):
            part = table.slice(first, rows)
            try:
                batch = columns.batch(part)
            except (pa.ArrowException, OSError) as error:
                raise damaged("Arrow", error, "; what follows is lost") from None
            after = file.tell()
            if tables.is_stream:  # all of it may have been read at once
                after = after * (first + len(part)) // len(table)
            batch.progress = max(after - before, 0)
            before += batch.progress
            yield batch


def _first(file: Any) -> dict[str, Any] | None:
    tables = ArrowFile(file)
    return first_row(tables.schema, tables)


FORMAT = TextFormat(
    name="arrow",
    suffixes=(".arrow", ".arrows"),
    other="",
    # A stream begins with the length of its schema, and that with where its table of fields is.
    magic=re.compile(rb"ARROW1\0\0|\xff{4}.{3}\0(?:\x10|\x0c|\x14)\0\0\0", re.DOTALL),
    read=read_arrow,
    first=_first,
    table=True,
)
