"""Files of columns beside ids, as several tools write them."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

Columns = dict[str, Any]


def as_jsonl(file: Path, columns: Columns) -> None:
    rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))


def as_parquet(file: Path, columns: Columns) -> None:
    parquet.write_table(pa.table(columns), file, row_group_size=2)


def rows_of(place: Path) -> list[dict[str, Any]]:
    """The rows of all Parquet files of a directory."""
    tables = (parquet.read_table(file) for file in sorted(place.glob("**/*.parquet")))
    return [row for table in tables for row in table.to_pylist()]


def as_arrow(file: Path, columns: Columns) -> None:
    table = pa.table(columns)
    with pa.ipc.new_stream(file, table.schema) as out:
        out.write_table(table, max_chunksize=2)


WRITE = {"jsonl": as_jsonl, "parquet": as_parquet, "arrow": as_arrow}
"""Writers by the name of the format."""
