"""Parquet: one document a row, the text in one column; read by row group, in slices of bounded size."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import IO, Any

from packtool.corpus.records import Batch, Document, Reject, UnusableFileError
from packtool.corpus.text import LONG, LongStream

_SLICE_BYTES = 1 << 22
_SLICE_ROWS = 4096


def open_parquet(file: IO[bytes]) -> Any:
    """A `pyarrow.parquet.ParquetFile`.

    Raises:
        UnusableFileError: damaged or not Parquet.
    """
    import pyarrow as pa
    from pyarrow import parquet

    try:
        return parquet.ParquetFile(file, pre_buffer=False, buffer_size=1 << 20)
    except (pa.ArrowException, OSError) as error:
        raise _damaged(error) from None


def _damaged(error: Exception) -> UnusableFileError:
    text = str(error).splitlines()[0].rstrip(".") if str(error) else type(error).__name__
    return UnusableFileError("damaged-file", f"not a whole Parquet file: {text}")


def row_groups(file: IO[bytes]) -> list[int]:
    """Uncompressed bytes of each row group."""
    meta = open_parquet(file).metadata
    return [meta.row_group(number).total_byte_size for number in range(meta.num_row_groups)]


def rows_before(file: IO[bytes], group: int) -> int:
    """Rows in the row groups before `group`."""
    meta = open_parquet(file).metadata
    return sum(meta.row_group(number).num_rows for number in range(group))


def read_parquet(file: IO[bytes], column: str, start: int = 0, stop: int = -1) -> Iterator[Batch]:
    """Documents of row groups [start, stop).

    Args:
        file: the Parquet file.
        column: name of the text column; dots go down into structs.
        start, stop: row groups; -1 for all that follow.

    Raises:
        UnusableFileError: damaged, or the column is not there or holds no text.
    """
    import pyarrow as pa

    parquet = open_parquet(file)
    path = _require_column(parquet.schema_arrow, column)
    meta = parquet.metadata
    share = file.seek(0, io.SEEK_END) / max(sum(row_groups(file)), 1)
    for number in range(start, meta.num_row_groups if stop < 0 else stop):
        group = meta.row_group(number)
        rows = max(1, min(_SLICE_ROWS, _SLICE_BYTES * group.num_rows // max(group.total_byte_size, 1)))
        slices = parquet.iter_batches(rows, row_groups=[number], columns=[column], use_threads=False)
        while True:
            try:
                table = next(slices, None)
            except (pa.ArrowException, OSError) as error:
                raise _damaged(error) from None
            if table is None:
                break
            batch = _batch(_descend(table, path), column)
            batch.records = len(table)
            batch.bytes = table.nbytes
            batch.progress = int(share * group.total_byte_size * len(table) / group.num_rows)
            yield batch


def _require_column(schema: Any, column: str) -> list[str]:
    import pyarrow as pa

    path = [column] if column in schema.names else column.split(".")
    kind: Any = pa.struct(list(schema))
    for part in path:
        if not pa.types.is_struct(kind) or kind.get_field_index(part) < 0:
            raise UnusableFileError("missing-text", f"no column {column!r}; there are {', '.join(schema.names[:12])}")
        kind = kind.field(kind.get_field_index(part)).type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    text = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view, pa.types.is_null)
    if not any(check(kind) for check in text):
        raise UnusableFileError("missing-text", f"column {column!r} holds {kind}, not strings")
    return path


def _descend(table: Any, path: list[str]) -> Any:
    import pyarrow.compute as pc

    array = table.column(0)
    if len(path) > 1:
        array = pc.struct_field(array, path[1:])  # a null struct has null fields
    return array


def _batch(array: Any, column: str) -> Batch:
    batch = Batch()
    texts: list[Document | bytes | None]
    try:
        texts = array.to_pylist() if array.nbytes <= LONG else [_text(value) for value in array]
    except UnicodeDecodeError:
        texts = [_text(value) for value in array]
    for number, text in enumerate(texts, 1):
        if text is None:
            batch.rejects.append(Reject(number, "missing-text", f"text column {column!r} is null"))
        elif isinstance(text, bytes):
            batch.rejects.append(Reject(number, "invalid-utf8", "not valid UTF-8", text))
        else:
            batch.documents.append(text)
    return batch


def _text(scalar: Any) -> Document | bytes | None:
    """The text of one value; its bytes where they are not UTF-8."""
    import pyarrow as pa

    if not scalar.is_valid:
        return None
    buffer = (scalar.value if isinstance(scalar, pa.DictionaryScalar) else scalar).as_buffer()
    try:
        if buffer.size <= LONG:
            return str(buffer, "utf-8")
        document = LongStream(lambda: pa.BufferReader(buffer), "utf-8")
        for _ in document:
            pass
    except UnicodeDecodeError:
        raw: bytes = buffer.to_pybytes()
        return raw
    return document
