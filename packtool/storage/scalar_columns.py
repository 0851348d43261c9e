"""Scalars kept beside the tokens: one Parquet file a shard, one row a document, every value as text."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import xxhash

from packtool.errors import DataError
from packtool.places.place import Place
from packtool.storage.files import write_bytes
from packtool.storage.schema import InputEntry


def write_columns(path: Path, names: Sequence[str], columns: Sequence[Sequence[str | None]]) -> InputEntry:
    """Write the columns of a shard and return their entry for the manifest."""
    import pyarrow as pa
    from pyarrow import parquet

    table = pa.table({name: pa.array(values, pa.string()) for name, values in zip(names, columns, strict=True)})
    out = io.BytesIO()
    parquet.write_table(table, out, compression="zstd")
    data = out.getvalue()
    write_bytes(path, data)
    return InputEntry(path.name, len(data), xxhash.xxh3_128_hexdigest(data))


def read_column(place: Place, entry: InputEntry, name: str) -> Any:
    """Read one column of a shard as a `pyarrow.ChunkedArray` of strings.

    Raises:
        DataError: the file is missing, or not what was written.
    """
    import pyarrow as pa
    from pyarrow import parquet

    data = pa.BufferReader(place.checked(entry))
    try:
        # Threads of Arrow that are just about to end when the process ends abort it, now and then.
        with parquet.ParquetFile(data, pre_buffer=False) as file:
            return file.read(columns=[name], use_threads=False).column(name)
    except (pa.ArrowException, KeyError) as error:
        what, where = f"has no column {name!r} ({error})", place.where(entry.name)
        raise DataError("bad-columns", what, remedy="make the dataset again", where=where) from None
