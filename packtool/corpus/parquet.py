"""Parquet: one document a row, the text in one column; read by row group, in slices of bounded size."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from packtool.corpus.records import (
    Document,
    Fields,
    RecordBatch,
    Reject,
    UnusableFileError,
    in_words,
    no_conversation,
    reject,
    scalar,
    too_large,
)
from packtool.corpus.text import LONG, LongStream, checked

_SLICE_BYTES = 1 << 22
_SLICE_ROWS = 4096


def open_parquet(file: io.RawIOBase) -> Any:
    """Open a file as a `pyarrow.parquet.ParquetFile`.

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
    return UnusableFileError("damaged-file", f"not a whole Parquet file: {in_words(error)}")


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
    return file.seek(0, io.SEEK_END) * sum(sizes[start : None if stop < 0 else stop]) // max(sum(sizes), 1)


def read_parquet(file: io.RawIOBase, fields: Fields, start: int, stop: int, limit: int) -> Iterator[RecordBatch]:
    """Read the documents of row groups [start, stop).

    Args:
        file: the Parquet file.
        fields: to read; dots go down into structs.
        start, stop: row groups; -1 for all that follow.
        limit: bytes of a text; longer ones are rejected.

    Raises:
        UnusableFileError: damaged (where pages have checksums, they are verified), or the column is not there or holds
            no text.
    """
    import pyarrow as pa

    parquet = open_parquet(file)
    schema = parquet.schema_arrow
    held = _conversation_columns(schema, fields) if fields.chat else (fields.text,)
    path = [] if fields.chat else require_column(schema, fields.text, ids=fields.ids)
    others = [require_scalar(schema, name) for name in fields.columns]
    wanted = list(dict.fromkeys([*held, *fields.columns]))
    meta = parquet.metadata
    share = file.seek(0, io.SEEK_END) / max(sum(row_groups(file)), 1)
    groups = range(start, meta.num_row_groups if stop < 0 else stop)
    left = sum(meta.row_group(number).num_rows for number in groups)
    for number in groups:
        group = meta.row_group(number)
        rows = max(1, min(_SLICE_ROWS, _SLICE_BYTES * group.num_rows // max(group.total_byte_size, 1)))
        slices = parquet.iter_batches(rows, row_groups=[number], columns=wanted, use_threads=False)
        while True:
            try:
                table = next(slices, None)
                batch = None if table is None else batch_of(table, fields, path, others, limit)
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


def require_column(schema: Any, column: str, *, ids: bool = False) -> list[str]:
    """Return the path to the column with the texts, or the lists of ids.

    Raises:
        UnusableFileError: it is not there, or holds something else.
    """
    import pyarrow as pa

    path, kind = _find_column(schema, column, "missing-text")
    if ids:
        lists = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
        if not any(check(kind) for check in lists) or not pa.types.is_integer(kind.value_type):
            raise UnusableFileError("bad-ids", f"column {column!r} holds {kind}, not lists of token ids")
        return path
    text = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view, pa.types.is_null)
    if not any(check(kind) for check in text):
        raise UnusableFileError("missing-text", f"column {column!r} holds {kind}, not strings")
    return path


def _conversation_columns(schema: Any, fields: Fields) -> tuple[str, ...]:
    """List the columns of a conversation that exist.

    Raises:
        UnusableFileError: there is none.
    """
    if fields.text:
        _find_column(schema, fields.text, "missing-text")
    known = [name for name in fields.document if name in (*schema.names, fields.text)]
    if fields.conversation(dict.fromkeys(known, "")) is None:
        what = f"{no_conversation(fields)}; there are {', '.join(schema.names[:12])}"
        raise UnusableFileError("missing-text", what)
    return tuple(known)


def require_scalar(schema: Any, column: str) -> list[str]:
    """Return the path to a column of scalars.

    Raises:
        UnusableFileError: it is not there, or holds something else.
    """
    import pyarrow as pa

    path, kind = _find_column(schema, column, "bad-field")
    binary = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view, pa.types.is_fixed_size_binary)
    if pa.types.is_nested(kind) or pa.types.is_interval(kind) or any(check(kind) for check in binary):
        raise UnusableFileError("bad-field", f"column {column!r} holds {kind}, not scalars")
    return path


def _find_column(schema: Any, column: str, code: str) -> tuple[list[str], Any]:
    import pyarrow as pa

    path = [column] if column in schema.names else column.split(".")
    kind: Any = pa.struct(list(schema))
    for part in path:
        places = kind.get_all_field_indices(part) if pa.types.is_struct(kind) else []
        if not places:
            raise UnusableFileError(code, f"no column {column!r}; there are {', '.join(schema.names[:12])}")
        if len(places) > 1:
            raise UnusableFileError(code, f"{len(places)} columns are called {part!r}")
        kind = kind.field(places[0]).type
    return path, kind.value_type if pa.types.is_dictionary(kind) else kind


def _descend(table: Any, path: list[str]) -> Any:
    import pyarrow.compute as pc

    array = table.column(path[0])
    if len(path) > 1:
        array = pc.struct_field(array, path[1:])  # a null struct has null fields
    return array


def batch_of(table: Any, fields: Fields, path: list[str], others: list[list[str]], limit: int) -> RecordBatch:
    """Extract the documents of a record batch, with the scalars beside them.

    Args:
        path: to the text; of conversations nothing.
        others: to each of the scalars.
        limit: bytes of a text; longer ones are rejected.
    """
    if fields.chat:
        batch = _conversations(table, fields)
    else:
        array = _descend(table, path)
        batch = _lists(array, fields.text) if fields.ids else _texts(array, fields.text, limit)
    if not fields.columns:
        return batch
    kept: list[int] = []
    columns = [_scalars(_descend(table, each)) for each in others]
    required = fields.columns.index(fields.required) if fields.required else None
    for place, number in enumerate(batch.numbers):
        if required is not None and columns[required][number - 1] is None:
            batch.rejects.append(Reject(number, "bad-field", f"column {fields.required!r} is null"))
        else:
            kept.append(place)
    batch.keep(kept)
    batch.rejects.sort(key=lambda reject: reject.record)
    batch.columns = [
        [scalar(column[number - 1], name) for number in batch.numbers]
        for column, name in zip(columns, fields.columns, strict=True)
    ]
    return batch


def _scalars(array: Any) -> list[Any]:
    """Return the values of a column of scalars.

    Arrow writes those that Python would round: times of nanoseconds, and numbers of less than 64 bits. Times are ISO
    8601, with a Z where the column has a time zone; durations are counted in the column's unit.
    """
    import pyarrow as pa

    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    kind = array.type
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        array = array.cast(pa.timestamp(kind.unit, "UTC"))
    if pa.types.is_temporal(kind):
        array = array.cast(pa.string())
    values: list[Any] = array.to_pylist()
    if pa.types.is_float32(kind) or pa.types.is_float16(kind):
        narrow = kind.to_pandas_dtype()
        values = [None if value is None else float(str(narrow(value))) for value in values]
    return values


def _lists(array: Any, column: str) -> RecordBatch:
    def usable(ids: list[int | None] | None) -> Any:
        if ids is not None and None not in ids:
            return ids
        what = "is null" if ids is None else "holds a null"
        return Reject(0, "bad-ids", f"column {column!r} {what}, not a list of token ids")

    return _batch(map(usable, array.to_pylist()))


def _conversations(table: Any, fields: Fields) -> RecordBatch:
    names = [name for name in fields.document if name in table.schema.names or name.split(".")[0] in table.schema.names]
    paths = [[name] if name in table.schema.names else name.split(".") for name in names]
    columns = [_descend(table, path).to_pylist() for path in paths]
    lacking = Reject(0, "missing-text", no_conversation(fields))
    records = (dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True))
    return _batch(lacking if each is None else each for each in map(fields.conversation, records))


def _texts(array: Any, column: str, limit: int) -> RecordBatch:
    texts: list[Document | Reject | None]
    try:
        texts = array.to_pylist() if array.nbytes <= min(LONG, limit) else [_text(value, limit) for value in array]
    except UnicodeDecodeError:
        texts = [_text(value, limit) for value in array]
    null = Reject(0, "missing-text", f"text column {column!r} is null")
    return _batch(null if text is None else text for text in texts)


def _batch(documents: Iterable[Any]) -> RecordBatch:
    """Make a batch of numbered documents and of the rejects among them."""
    batch = RecordBatch()
    for number, document in enumerate(documents, 1):
        if isinstance(document, Reject):
            batch.rejects.append(msgspec.structs.replace(document, record=number))
        else:
            batch.documents.append(document)
            batch.numbers.append(number)
    return batch


def _text(scalar: Any, limit: int) -> Document | Reject | None:
    """Return the text of one value, or why it can't be used: too long, or not UTF-8."""
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
        return checked(LongStream(lambda: pa.BufferReader(buffer), "utf-8"))
    except UnicodeDecodeError:
        return reject(0, "invalid-utf8", "not valid UTF-8", memoryview(buffer))
