"""Parquet: one document a row, the text in one column; read by row group, in slices of bounded size."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import IO, Any

import msgspec

from packtool.corpus.parquet_pages import require_plausible
from packtool.corpus.records import RECORD_BYTES, Batch, Document, Reject, UnusableFileError, reject, too_large
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
        return parquet.ParquetFile(file, pre_buffer=False, buffer_size=1 << 20, page_checksum_verification=True)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
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


def read_parquet(
    file: IO[bytes], column: str, start: int = 0, stop: int = -1, limit: int = RECORD_BYTES
) -> Iterator[Batch]:
    """Documents of row groups [start, stop).

    Args:
        file: the Parquet file.
        column: name of the text column; dots go down into structs.
        start, stop: row groups; -1 for all that follow.
        limit: bytes of a text; longer ones are rejected.

    Raises:
        UnusableFileError: damaged (where pages have checksums, they are verified), or the column is not there or holds
            no text.
    """
    import pyarrow as pa

    parquet = open_parquet(file)
    path = _require_column(parquet.schema_arrow, column)
    meta = parquet.metadata
    share = file.seek(0, io.SEEK_END) / max(sum(row_groups(file)), 1)
    groups = range(start, meta.num_row_groups if stop < 0 else stop)
    left = sum(meta.row_group(number).num_rows for number in groups)
    for number in groups:
        group = meta.row_group(number)
        rows = max(1, min(_SLICE_ROWS, _SLICE_BYTES * group.num_rows // max(group.total_byte_size, 1)))
        require_plausible(file, meta, number, column)
        slices = parquet.iter_batches(rows, row_groups=[number], columns=[column], use_threads=False)
        while True:
            try:
                table = next(slices, None)
                batch = _batch(_descend(table, path), column, limit) if table is not None else None
            except (pa.ArrowException, OSError) as error:
                damage = _damaged(error)
                damage.reason += f"; {left:,} rows are lost"
                raise damage from None
            if table is None or batch is None:
                break
            left -= len(table)
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


def _batch(array: Any, column: str, limit: int) -> Batch:
    numbers: list[int] = []
    batch = Batch(numbers=numbers)
    texts: list[Document | Reject | None]
    try:
        texts = array.to_pylist() if array.nbytes <= min(LONG, limit) else [_text(value, limit) for value in array]
    except UnicodeDecodeError:
        texts = [_text(value, limit) for value in array]
    for number, text in enumerate(texts, 1):
        if text is None:
            batch.rejects.append(Reject(number, "missing-text", f"text column {column!r} is null"))
        elif isinstance(text, Reject):
            batch.rejects.append(msgspec.structs.replace(text, record=number))
        else:
            batch.documents.append(text)
            numbers.append(number)
    return batch


def _text(scalar: Any, limit: int) -> Document | Reject | None:
    """The text of one value; why it can't be used where it is too long or not UTF-8."""
    import pyarrow as pa

    value = scalar.value if isinstance(scalar, pa.DictionaryScalar) else scalar
    if not scalar.is_valid or not value.is_valid:
        return None
    buffer = value.as_buffer()
    if buffer.size > limit:
        return reject(0, "record-too-large", too_large(buffer.size, limit), memoryview(buffer))
    try:
        if buffer.size <= LONG:
            return str(buffer, "utf-8")
        document = LongStream(lambda: pa.BufferReader(buffer), "utf-8")
        for _ in document:
            pass
    except UnicodeDecodeError:
        return reject(0, "invalid-utf8", "not valid UTF-8", memoryview(buffer))
    return document
