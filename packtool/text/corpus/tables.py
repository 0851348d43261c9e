"""Parquet, CSV and TSV: one document a row, the text in one column.

Parquet is read by row group, in slices of bounded size.
"""

from __future__ import annotations

import csv as standard_csv
import io
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from packtool.support.sizes import plural
from packtool.text.corpus.records import (
    Fields,
    Readable,
    RecordBatch,
    Reject,
    UnusableFileError,
    in_words,
    no_conversation,
    reject,
    scalar,
    too_large,
)

_SLICE_BYTES = 1 << 22
_SLICE_ROWS = 4096
_BLOCK_BYTES = 1 << 24
"""Bytes of a CSV file parsed at a time, and the longest row."""
_HEADER_BYTES = 1 << 16


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
        fields: to read; dots go down into structs.
        start, stop: row groups; -1 for all that follow.
        limit: bytes of a text; longer ones are rejected.

    Raises:
        UnusableFileError: damaged (where pages have checksums, they are verified), or the column is not there or holds
            no text.
    """
    import pyarrow as pa

    parquet = open_parquet(file)
    columns = _Columns(parquet.schema_arrow, fields, limit)
    meta = parquet.metadata
    share = file.seek(0, io.SEEK_END) / max(sum(row_groups(file)), 1)
    groups = range(start, meta.num_row_groups if stop < 0 else stop)
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


def read_table(stream: Readable, fields: Fields, delimiter: str, limit: int) -> Iterator[RecordBatch]:
    """Read the documents of the rows of a table, numbered from 1 below the header.

    Fields may be quoted, and then hold newlines; a quote inside is doubled. Every value is text as it stands, an empty
    one too. Rows with another number of values than the header are rejected.

    Args:
        stream: uncompressed bytes.
        delimiter: between two values.
        limit: bytes of a text; longer ones are rejected.

    Raises:
        UnusableFileError: it can't be parsed, or a column is not there.
    """
    import pyarrow as pa
    from pyarrow import csv

    if fields.ids:
        raise UnusableFileError("bad-ids", "a table of text, which has no lists of token ids")
    wrong: dict[int, str] = {}  # of rows that were parsed so far, by their number below the header

    def note(row: Any) -> str:
        what = f"{plural(row.actual_columns, 'value')}, where the header has {row.expected_columns}"
        wrong[row.number - 1] = what
        return "skip"

    buffered = io.BufferedReader(_Raw(stream), _HEADER_BYTES)
    try:
        reader = csv.open_csv(
            buffered,
            read_options=csv.ReadOptions(use_threads=False, block_size=_BLOCK_BYTES),
            parse_options=csv.ParseOptions(delimiter=delimiter, newlines_in_values=True, invalid_row_handler=note),
            convert_options=csv.ConvertOptions(
                # Else Arrow guesses each column's type from the first block, and fails where a later one differs.
                column_types={name: pa.string() for name in _header(buffered.peek(), delimiter)},
                strings_can_be_null=False,
            ),
        )
        columns = _Columns(reader.schema, fields, limit)
        before = 0
        for table in reader:
            batch = columns.batch(table)
            _number(batch, len(table), wrong, before)
            batch.bytes = table.nbytes
            before += batch.records
            yield batch
        if wrong:
            last = max(wrong) - before
            rejects = [Reject(number - before, "bad-table-row", what) for number, what in wrong.items()]
            yield RecordBatch(columns=[[] for _ in fields.columns], rejects=rejects, records=last)
    except (pa.ArrowException, UnicodeDecodeError) as error:
        text = in_words(error)
        if "straddling" in text:
            text = f"a row has more than {_BLOCK_BYTES >> 20} MiB, or a quote is never closed"
        raise UnusableFileError("damaged-file", f"not a table of values: {text}") from None


def _header(head: bytes, delimiter: str) -> list[str]:
    """Read the names in the first row of a table from its first bytes.

    >>> _header(b'id,"full, text"\\n1,a\\n', ",")
    ['id', 'full, text']
    """
    text = io.StringIO(head.decode("utf-8-sig", "replace"), newline="")
    return next(standard_csv.reader(text, delimiter=delimiter), [])


def _number(batch: RecordBatch, rows: int, wrong: dict[int, str], before: int) -> None:
    """Number the rows of a batch together with the rejected ones, taken from `wrong`."""
    places: list[int] = []
    rejects: list[Reject] = []
    at = 0
    while len(places) < rows:
        at += 1
        if (what := wrong.pop(before + at, None)) is not None:
            rejects.append(Reject(at, "bad-table-row", what))
        else:
            places.append(at)
    rejects += [msgspec.structs.replace(reject, record=places[reject.record - 1]) for reject in batch.rejects]
    batch.rejects = sorted(rejects, key=lambda reject: reject.record)
    batch.numbers = [places[number - 1] for number in batch.numbers]
    batch.records = at


class _Raw(io.RawIOBase):
    """A stream as the library wants it."""

    def __init__(self, stream: Readable) -> None:
        super().__init__()
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        data = self._stream.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


class _Columns:
    """The columns to read of tables with one schema.

    Attributes:
        names: of all columns that are read.

    Raises:
        UnusableFileError: one is not there, or holds something else.
    """

    def __init__(self, schema: Any, fields: Fields, limit: int) -> None:
        import pyarrow as pa

        self._fields = fields
        self._limit = limit
        if fields.chat:
            held = self._conversation(schema)
        else:
            held = (fields.text,)
            self._path, kind = _find(schema, fields.text, "missing-text")
            if fields.ids:
                lists = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
                if not any(check(kind) for check in lists) or not pa.types.is_integer(kind.value_type):
                    what = f"column {fields.text!r} holds {kind}, not lists of token ids"
                    raise UnusableFileError("bad-ids", what)
            else:
                texts = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view, pa.types.is_null)
                if not any(check(kind) for check in texts):
                    raise UnusableFileError("missing-text", f"column {fields.text!r} holds {kind}, not strings")
        self._others = [self._scalar(schema, name) for name in fields.columns]
        self.names = list(dict.fromkeys([*held, *fields.columns]))

    def _conversation(self, schema: Any) -> tuple[str, ...]:
        """List the columns of a conversation that exist."""
        fields = self._fields
        if fields.text:
            _find(schema, fields.text, "missing-text")
        known = [name for name in fields.document if name in (*schema.names, fields.text)]
        if fields.conversation(dict.fromkeys(known, "")) is None:
            what = f"{no_conversation(fields)}; there are {', '.join(schema.names[:12])}"
            raise UnusableFileError("missing-text", what)
        return tuple(known)

    @staticmethod
    def _scalar(schema: Any, column: str) -> list[str]:
        """Return the path to a column of scalars."""
        import pyarrow as pa

        path, kind = _find(schema, column, "bad-field")
        binary = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view, pa.types.is_fixed_size_binary)
        if pa.types.is_nested(kind) or any(check(kind) for check in binary):
            raise UnusableFileError("bad-field", f"column {column!r} holds {kind}, not scalars")
        return path

    def batch(self, table: Any) -> RecordBatch:
        """Extract the documents of a record batch, with their scalars."""
        fields = self._fields
        if fields.chat:
            batch = _conversations(table, fields)
        else:
            array = _descend(table, self._path)
            batch = _lists(array, fields.text) if fields.ids else _texts(array, fields.text, self._limit)
        if not fields.columns:
            return batch
        kept: list[int] = []
        columns = [_scalars(_descend(table, path)) for path in self._others]
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


def _find(schema: Any, column: str, code: str) -> tuple[list[str], Any]:
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
    return _batch(lacking if value is None else value for value in map(fields.conversation, records))


def _texts(array: Any, column: str, limit: int) -> RecordBatch:
    texts: list[str | Reject | None]
    try:
        texts = array.to_pylist() if array.nbytes <= limit else [_text(value, limit) for value in array]
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
