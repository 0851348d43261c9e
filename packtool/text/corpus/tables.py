"""Parquet and Arrow: one document a row, in one column or several.

Parquet is read by row group, in slices of bounded size; Arrow files, as `datasets` writes them, by record batch.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import msgspec

from packtool.formats.fields import CONVERSATION, MEDIA
from packtool.text.corpus.documents import document_of, listed
from packtool.text.corpus.records import (
    Fields,
    RecordBatch,
    Reject,
    UnusableFieldError,
    UnusableFileError,
    in_words,
    reject,
    scalar,
    too_large,
)
from packtool.text.corpus.rows import NotTextError, Reader, is_json, reader_of

UNSEEN = "…"
"""A value of which only the column is known."""
_SLICE_BYTES = 1 << 22
_SLICE_ROWS = 4096
_END = b"\xff\xff\xff\xff\0\0\0\0", b"\0\0\0\0"
"""Ends of a stream of Arrow: today's, and that of versions before 0.15."""


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
        raise _damaged("Parquet", error) from None


def _damaged(kind: str, error: Exception, lost: str = "") -> UnusableFileError:
    return UnusableFileError("damaged-file", f"not a whole {kind} file: {in_words(error)}{lost}")


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
        fields: to read; dots go down into structs.
        start, stop: row groups; -1 for all that follow. A file without rows may have none.
        limit: bytes of a text; longer ones are rejected.

    Raises:
        UnusableFileError: damaged (where pages have checksums, they are verified), or the column is not there or holds
            no text.
    """
    import pyarrow as pa

    parquet = open_parquet(file)
    columns = Columns(parquet.schema_arrow, fields, limit)
    meta = parquet.metadata
    share = file.seek(0, io.SEEK_END) / max(sum(row_groups(file)), 1)
    groups = range(start, meta.num_row_groups if stop < 0 else min(stop, meta.num_row_groups))
    left = sum(meta.row_group(number).num_rows for number in groups)
    for number in groups:
        group = meta.row_group(number)
        rows = max(1, min(_SLICE_ROWS, _SLICE_BYTES * group.num_rows // max(group.total_byte_size, 1)))
        slices = parquet.iter_batches(rows, row_groups=[number], columns=columns.names, use_threads=False)
        while True:
            try:
                table = next(slices, None)
                batch = None if table is None else columns.batch(table)
            except (pa.ArrowException, OSError) as error:
                raise _damaged("Parquet", error, f"; {left:,} rows are lost") from None
            if table is None or batch is None:
                break
            left -= len(table)
            batch.progress = int(share * group.total_byte_size * len(table) / group.num_rows)
            yield batch


def read_arrow(file: io.RawIOBase, fields: Fields, limit: int) -> Iterator[RecordBatch]:
    """Read the documents of a file of Arrow's IPC format, or a stream of it as `datasets` writes them.

    Args:
        fields, limit: see `read_parquet`.

    Raises:
        UnusableFileError: damaged, or the column is not there or holds no text.
    """
    import pyarrow as pa

    opened, ended = _open_arrow(file)
    stream = not hasattr(opened, "num_record_batches")
    try:
        columns = Columns(opened.schema, fields, limit)
        tables = opened if stream else map(opened.get_batch, range(opened.num_record_batches))
        before = 0
        for table in tables:
            rows = max(1, min(_SLICE_ROWS, _SLICE_BYTES * len(table) // max(table.nbytes, 1)))
            for first in range(0, len(table), rows):
                part = table.slice(first, rows)
                batch = columns.batch(part)
                after = file.tell() * (first + len(part)) // len(table) if stream else file.tell()
                batch.progress = max(after - before, 0)
                before += batch.progress
                yield batch
    except (pa.ArrowException, OSError) as error:
        raise _damaged("Arrow", error, "; what follows is lost") from None
    if not ended:
        raise UnusableFileError("damaged-file", "a stream of Arrow without its end: what follows is lost")


def _open_arrow(file: io.RawIOBase) -> tuple[Any, bool]:
    """Open a file of Arrow's IPC format, or a stream; return it, and whether it is there to its end.

    Raises:
        UnusableFileError: damaged.
    """
    import pyarrow as pa

    stream, ended = file.read(1) == b"\xff", True
    if stream:
        file.seek(max(file.seek(0, io.SEEK_END) - len(_END[0]), 0))
        ended = (file.read(len(_END[0])) or b"").endswith(_END)
    file.seek(0)
    try:
        return (pa.ipc.open_stream(file) if stream else pa.ipc.open_file(file)), ended
    except (pa.ArrowException, OSError) as error:
        raise _damaged("Arrow", error, "; what follows is lost") from None


def example_row(file: io.RawIOBase, format: str) -> dict[str, Any]:
    """Return a row as a table may have it, from its columns alone.

    Raises:
        UnusableFileError: damaged.
    """
    return example_of(open_parquet(file).schema_arrow if format == "parquet" else _open_arrow(file)[0].schema)


def example_of(fields: Any) -> dict[str, Any]:
    """Return an object that has these fields of Arrow, with values of their types.

    >>> import pyarrow as pa
    >>> example_of(pa.schema([("id", pa.int64()), ("turns", pa.list_(pa.struct([("role", pa.string())])))]))
    {'id': 0, 'turns': [{'role': '…'}]}
    """
    return {field.name: _example(field.type) for field in fields}


def _example(kind: Any) -> Any:
    from pyarrow import types

    if types.is_struct(kind):
        return example_of(kind)
    if types.is_nested(kind) and hasattr(kind, "value_type"):
        return [_example(kind.value_type)]
    if types.is_null(kind):
        return None
    if types.is_boolean(kind):
        return False
    return 0 if types.is_integer(kind) or types.is_floating(kind) else UNSEEN


class Columns:
    """The columns to read of tables with one schema.

    Args:
        limit: bytes of a text; longer ones are rejected.

    Attributes:
        names: of all columns that are read.

    Raises:
        UnusableFileError: one is not there, or holds something else.
    """

    def __init__(self, schema: Any, fields: Fields, limit: int) -> None:
        self._fields = fields
        self._limit = limit
        self._known = schema.names
        held = self._held(schema)
        self._paths: dict[str, list[str]] = {}
        self._readers: dict[str, Reader | None] = {}
        for name in held:
            self._paths[name], kind = _find(schema, name, "missing-text")
            self._readers[name] = bool if name in MEDIA else reader_of(kind, name, beside=self._holds_messages(name))
        self._plain = fields.plain and not fields.ids and self._readers[fields.text] is None
        self._others = [_scalar(schema, name) for name in fields.columns]
        self.names = list(dict.fromkeys([*held, *fields.columns]))

    def _holds_messages(self, name: str) -> bool:
        return self._fields.chat and name in (self._fields.text, *CONVERSATION)

    def _held(self, schema: Any) -> list[str]:
        """List the columns of documents that there are, of the types they need."""
        fields = self._fields
        if fields.ids:
            return self._held_with_ids(schema)
        held = [name for name in fields.document if _is_there(schema, name)]
        lacking = fields.lacking(held)
        if lacking:
            raise UnusableFileError("missing-text", f"{lacking}; {listed(schema.names)}")
        if fields.chat:
            return held
        for name in held:
            _, kind = _find(schema, name, "missing-text")
            if not _holds_text(kind):
                raise UnusableFileError("missing-text", f"column {name!r} holds {kind}, not strings")
        return held

    def _held_with_ids(self, schema: Any) -> list[str]:
        """List the column of ids, and the columns that may say more of them."""
        name = self._fields.text
        _, kind = _find(schema, name, "missing-text")
        if not _holds_ids(kind):
            raise UnusableFileError("bad-ids", f"column {name!r} holds {kind}, not lists of token ids")
        held = [name]
        for other in self._fields.beside:
            with suppress(UnusableFileError):  # it is not there
                _find(schema, other, "bad-ids")
                held.append(other)
        return held

    def batch(self, table: Any) -> RecordBatch:
        """Extract the documents of a record batch, with their scalars."""
        fields = self._fields
        if self._plain:
            documents = _texts(_descend(table, self._paths[fields.text]), fields.text, self._limit)
        else:
            documents = self._documents(table)
        batch = RecordBatch(records=len(table), bytes=table.nbytes)
        columns = [_scalars(_descend(table, path)) for path in self._others]
        required = fields.columns.index(fields.required) if fields.required else None
        for number, document in enumerate(documents, 1):
            if isinstance(document, Reject):
                batch.rejects.append(msgspec.structs.replace(document, record=number))
            elif required is not None and columns[required][number - 1] is None:
                batch.rejects.append(Reject(number, "bad-field", f"column {fields.required!r} is null"))
            else:
                batch.documents.append(document)
                batch.numbers.append(number)
        for name, column in zip(fields.columns, columns, strict=True):
            batch.columns.append([scalar(column[number - 1], name) for number in batch.numbers])
        return batch

    def _documents(self, table: Any) -> Iterator[Any]:
        """Make the document of each row, or a reject that says why the row has no document."""
        columns = [_descend(table, path).to_pylist() for path in self._paths.values()]
        for row in zip(*columns, strict=True):
            values = dict(zip(self._paths, row, strict=True))
            try:
                for name, read in self._readers.items():
                    values[name] = values[name] if read is None else read(values[name])
                document = document_of(self._fields, values, self._known)
            except NotTextError as error:
                yield Reject(0, "invalid-utf8", f"column {name!r}: {error}")
            except UnusableFieldError as error:
                yield Reject(0, *error.args)
            else:
                size = len(document.encode()) if isinstance(document, str) else 0
                large = Reject(0, "record-too-large", too_large(size, self._limit))
                yield large if size > self._limit else document


def _is_there(schema: Any, name: str) -> bool:
    return name in schema.names or ("." in name and name.split(".", maxsplit=1)[0] in schema.names)


def _holds_text(kind: Any) -> bool:
    from pyarrow import types

    binary = (types.is_binary, types.is_large_binary, types.is_binary_view)
    texts = (types.is_string, types.is_large_string, types.is_string_view, types.is_null)
    return is_json(kind) or any(check(kind) for check in (*texts, *binary))


def _holds_ids(kind: Any) -> bool:
    from pyarrow import types

    lists = (types.is_list, types.is_large_list, types.is_fixed_size_list)
    return any(check(kind) for check in lists) and types.is_integer(kind.value_type)


def _scalar(schema: Any, column: str) -> list[str]:
    """Return the path to a column of scalars."""
    from pyarrow import types

    path, kind = _find(schema, column, "bad-field")
    binary = (types.is_binary, types.is_large_binary, types.is_binary_view, types.is_fixed_size_binary)
    if types.is_nested(kind) or any(check(kind) for check in binary):
        raise UnusableFileError("bad-field", f"column {column!r} holds {kind}, not scalars")
    return path


def _find(schema: Any, column: str, code: str) -> tuple[list[str], Any]:
    import pyarrow as pa

    path = [column] if column in schema.names else column.split(".")
    kind: Any = pa.struct(list(schema))
    for part in path:
        places = kind.get_all_field_indices(part) if pa.types.is_struct(kind) else []
        if not places:
            raise UnusableFileError(code, f"no column {column!r}; {listed(schema.names)}")
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


def _scalars(array: Any) -> list[Any]:
    """Return the values of a column of scalars.

    Arrow writes what Python would round: times of nanoseconds, and numbers of less than 64 bits. Times are ISO
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
        for place, value in enumerate(values):
            if value is not None:
                values[place] = float(str(narrow(value)))
    return values


def _texts(array: Any, column: str, limit: int) -> Iterator[str | Reject]:
    """Return the text of each row, or a reject that says why the row has no text."""
    texts: list[str | Reject | None]
    try:
        texts = array.to_pylist() if array.nbytes <= limit else [_text(value, limit) for value in array]
    except UnicodeDecodeError:
        texts = [_text(value, limit) for value in array]
    null = Reject(0, "missing-text", f"text column {column!r} is null")
    return (null if text is None else text for text in texts)


def _text(scalar: Any, limit: int) -> str | Reject | None:
    """Return the text of one value, or why it can't be used: too long, or not UTF-8."""
    import pyarrow as pa

    value = scalar.value if isinstance(scalar, pa.DictionaryScalar) else scalar
    if not scalar.is_valid or not value.is_valid:
        return None
    buffer = value.as_buffer()
    if buffer.size > limit:
        return reject(0, "record-too-large", too_large(buffer.size, limit), memoryview(buffer))
    try:
        return str(buffer, "utf-8")
    except UnicodeDecodeError:
        return reject(0, "invalid-utf8", "not valid UTF-8", memoryview(buffer))
