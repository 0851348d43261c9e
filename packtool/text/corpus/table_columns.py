"""The columns of tables that are read: found in the schema, required to be of their types, and made into documents."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np

from packtool.text.conversations.layouts import ANSWERS, MESSAGES, PREFERENCE
from packtool.text.corpus.documents import document_of, fields_there, in_parts
from packtool.text.corpus.records import Fields, MadeDocument, RecordBatch, require_size, scalar, text_in
from packtool.text.corpus.rows import Reader, is_any, is_bytes, is_json, is_text, reader_of
from packtool.text.faults import Fault
from packtool.text.paths import steps, top_of

Path = tuple[str | int, ...]
"""The names and indices on the way to a value, the name of a column first."""


class Columns:
    """The columns to read of tables with one schema.

    Args:
        limit: bytes of a text; longer ones are rejected.

    Attributes:
        names: of all columns that are read.

    Raises:
        Fault: one is not there, or holds something else.
    """

    def __init__(self, schema: Any, fields: Fields, limit: int) -> None:
        self._fields = fields
        self._limit = limit
        self._known = schema.names
        held = self._held(schema)
        self._paths: dict[str, Path] = {}
        self._readers: dict[str, Reader | None] = {}
        named = (*MESSAGES, *fields.layout.paths) if fields.layout is not None else ()
        self._told = fields.told_by(schema.names)
        for name in held:
            self._paths[name], kind = _find(schema, name, "missing-text")
            try:
                self._readers[name] = reader_of(kind, name, beside=name in named)
            except Fault:
                if name in named or not fields.by_name:
                    raise
                del self._paths[name]
                self._told.append(name)
        self._missing = set(fields.optional)
        # Where no other column may make a conversation of a row, the texts are taken as they are.
        others = fields.by_name and not {*MESSAGES, *ANSWERS, *PREFERENCE}.isdisjoint(held)
        self._plain = fields.plain and not fields.ids and not others and self._readers[fields.text] is None
        self._others = [_scalar(schema, name, required=name == fields.required) for name in fields.columns]
        self._required = 0  # its place, if there is one
        if fields.required:
            self._required = fields.columns.index(fields.required)
        told = [(name,) for name in self._told]
        self.names = list(dict.fromkeys(map(_column, filter(None, [*self._paths.values(), *self._others, *told]))))

    def _held(self, schema: Any) -> list[str]:
        """List the columns of documents that there are, of the types they need."""
        fields = self._fields
        if fields.ids:
            return self._held_with_ids(schema)
        held = [name for name in dict.fromkeys(fields.document) if _is_there(schema, name)]
        lacking = fields.lacking(held)
        if lacking:
            raise Fault("missing-text", f"{lacking}; {fields_there(schema.names)}")
        if fields.chat:
            return held
        for name in filter(held.__contains__, (fields.text, *fields.texts)):
            _, kind = _find(schema, name, "missing-text")
            if _is_list(kind) and _holds_text(kind.value_type):
                raise in_parts(name, f"array_to_string({name}, chr(10)) in DuckDB")
            if not _holds_text(kind):
                raise Fault("missing-text", f"column {name!r} holds {kind}, not strings")
        return held

    def _held_with_ids(self, schema: Any) -> list[str]:
        """List the column of ids, and the columns that may say more of them."""
        name = self._fields.text
        _, kind = _find(schema, name, "missing-text")
        if not _holds_ids(kind):
            raise Fault("bad-ids", f"column {name!r} holds {kind}, not lists of token ids")
        held = [name]
        for other in sorted(self._fields.beside):
            with suppress(Fault):  # it is not there
                _find(schema, other, "bad-ids")
                held.append(other)
        return held

    def batch(self, table: Any) -> RecordBatch:
        """Extract the documents of a record batch, with their scalars."""
        fields = self._fields
        batch = RecordBatch(fields, records=len(table), bytes=table.nbytes, missing=self._missing)
        columns: list[list[Any]] = []
        at_fault = False
        for name, path in zip(fields.columns, self._others, strict=True):
            if path is None:  # as in a record that lacks a field
                columns.append([None] * len(table))
                continue
            values = _scalars(_descend(table, path), name)
            write = scalar
            if Fault in set(map(type, values)):
                write, at_fault = _scalar_or_fault, True
            columns.append([write(value, name) for value in values])
        rows = self._rows(table)
        if fields.required:
            at_fault = at_fault or None in columns[self._required]
        if not at_fault:
            with suppress(Fault):  # one by one, to find which it is
                batch.take(self._documents(rows), columns)
                return batch
        for number, row in enumerate(rows, 1):
            scalars = [column[number - 1] for column in columns]
            batch.add(number, partial(self._made, scalars), row)
        return batch

    def _rows(self, table: Any) -> list[Any]:
        """List what the document of each row is made of: a text, its bytes, or the values of several columns."""
        if self._plain:
            return _texts(_descend(table, self._paths[self._fields.text]), self._limit)
        rows = []
        columns = [_values(_descend(table, path), name) for name, path in self._paths.items()]
        for values in zip(*columns, strict=True):
            rows.append(dict(zip(self._paths, values, strict=True)))
        for name in self._told:
            for row, is_there in zip(rows, something_in(table.column(name)), strict=True):
                row[name] = is_there or None
        return rows

    def _documents(self, rows: list[Any]) -> list[Any]:
        """Make the documents of all rows, as most tables allow; a `Fault` of one of them is one of all."""
        if set(map(type, rows)) <= {str}:
            return rows
        return list(map(self._document, rows))

    def _made(self, scalars: list[Any], row: Any) -> MadeDocument:
        """Make the document of a row."""
        document = self._document(row)
        for value in scalars:
            if isinstance(value, Fault):
                raise value
        if self._fields.required and scalars[self._required] is None:
            raise Fault("bad-field", f"column {self._fields.required!r} is null")
        return document, scalars

    def _document(self, row: Any) -> Any:
        """Make the document of what `_rows` lists."""
        if self._plain:
            return self._text(row)
        values = dict(row)
        for value in row.values():
            if isinstance(value, Fault):
                raise value
        for name, read in self._readers.items():
            if read is not None:
                values[name] = read(values[name])
        document = document_of(self._fields, values, self._known, self._missing)
        if isinstance(document, str):
            require_size(len(document.encode()), self._limit)
        return document

    def _text(self, value: str | memoryview | None) -> str:
        """Return a text that may still be bytes."""
        if value is None:
            raise Fault("missing-text", f"text column {self._fields.text!r} is null")
        if isinstance(value, str):
            return value
        require_size(len(value), self._limit)
        return text_in(value)


def something_in(array: Any) -> list[bool]:
    """Say of each value of a column whether it is something: neither null, nor an empty text or list."""
    import pyarrow.compute as pc
    from pyarrow import types

    there = array.is_valid()
    if _is_list(array.type):
        there = pc.greater(pc.fill_null(pc.list_value_length(array), 0), 0)
    elif is_any(array.type, types.is_string, types.is_large_string, types.is_binary, types.is_large_binary):
        there = pc.greater(pc.fill_null(pc.binary_length(array), 0), 0)
    found: list[bool] = there.to_pylist()
    return found


def _is_there(schema: Any, name: str) -> bool:
    """Return whether there is a column of this name, or one that its dots go down into."""
    return name in schema.names or top_of(name) in schema.names


def _column(path: Path) -> str:
    """Return the column, or the part of one, that has to be read for a path: all of what holds a list."""
    if set(map(type, path)) == {str}:
        return ".".join(map(str, path))
    return str(path[0])


def _holds_text(kind: Any) -> bool:
    from pyarrow import types

    return is_json(kind) or is_text(kind) or is_bytes(kind) or types.is_null(kind)


def _holds_ids(kind: Any) -> bool:
    from pyarrow import types

    return _is_list(kind) and types.is_integer(kind.value_type)


def _is_list(kind: Any) -> bool:
    from pyarrow import types

    return is_any(kind, types.is_list, types.is_large_list, types.is_fixed_size_list)


def _scalar(schema: Any, column: str, *, required: bool) -> Path | None:
    """Return the path to a column of scalars; None if the table lacks it, and may lack it."""
    from pyarrow import types

    found = _found(schema, column, "bad-field")
    if found is None and not required:
        return None
    path, kind = found or _find(schema, column, "bad-field")
    if types.is_nested(kind) or is_bytes(kind) or types.is_fixed_size_binary(kind):
        raise Fault("bad-field", f"column {column!r} holds {kind}, not scalars")
    return path


def _find(schema: Any, column: str, code: str) -> tuple[Path, Any]:
    """Find a column as `_found` does; a `Fault` with this code if there is none."""
    found = _found(schema, column, code)
    if found is None:
        raise Fault(code, f"no column {column!r}; {fields_there(schema.names)}")
    return found


def _found(schema: Any, column: str, code: str) -> tuple[Path, Any] | None:
    """Find a column, or what lies at a path in one, unless a column has the whole name.

    Returns:
        The names and indices on the way to it, and its type, of a dictionary the type of its values; None if there is
        none.
    """
    import pyarrow as pa

    path: Path = steps(column)
    if column in schema.names:
        path = (column,)
    kind: Any = pa.struct(list(schema))
    for part in path:
        if isinstance(part, int) and hasattr(kind, "value_type") and pa.types.is_nested(kind):
            kind = kind.value_type
            continue
        places = kind.get_all_field_indices(part) if pa.types.is_struct(kind) else []
        if not places:
            return None
        if len(places) > 1:
            raise Fault(code, f"{len(places)} columns are called {part!r}")
        kind = kind.field(places[0]).type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return path, kind


def _descend(table: Any, path: Path) -> Any:
    """Return the values of a column, or at a path in it; null where the path leads nowhere."""
    import pyarrow.compute as pc

    array = table.column(path[0])
    for step in path[1:]:
        # A null struct has null fields.
        array = _elements(array, step) if isinstance(step, int) else pc.struct_field(array, [step])
    return array


def _elements(lists: Any, place: int) -> Any:
    """Return the element at a place of each list, null for lists without it."""
    import pyarrow as pa
    import pyarrow.compute as pc

    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    ends = np.cumsum(lengths)
    at = ends + place
    if place >= 0:
        at -= lengths
    missing = (place >= lengths) | (place < -lengths)
    return lists.flatten().take(pa.array(at, mask=missing))


def _values(array: Any, name: str) -> list[Any]:
    """Return the values of a column; in place of one that holds text which is not UTF-8, the fault of its record."""
    with suppress(UnicodeDecodeError):
        values: list[Any] = array.to_pylist()
        return values
    fault = Fault("invalid-utf8", f"column {name!r} holds text that is not valid UTF-8")
    values = []
    for value in array:
        try:
            values.append(value.as_py())
        except UnicodeDecodeError:
            values.append(fault)
    return values


def _scalar_or_fault(value: Any, name: str) -> Any:
    if isinstance(value, Fault):
        return value
    return scalar(value, name)


def _scalars(array: Any, name: str) -> list[Any]:
    """Return the values of a column of scalars, or faults, as `_values` does.

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
    values = _values(array, name)
    if pa.types.is_float32(kind) or pa.types.is_float16(kind):
        narrow = kind.to_pandas_dtype()
        for place, value in enumerate(values):
            if value is not None:
                values[place] = float(str(narrow(value)))
    return values


def _texts(array: Any, limit: int) -> list[Any]:
    """List the text of each row, None for no text; the bytes of each where one may be too long, or is not UTF-8."""
    if array.nbytes <= limit:  # so no text is too long, and all can be converted at once, which is faster
        with suppress(UnicodeDecodeError):  # one by one, to find which it is
            texts: list[Any] = array.to_pylist()
            return texts
    return list(map(_bytes, array))


def _bytes(scalar: Any) -> memoryview | None:
    import pyarrow as pa

    value = scalar
    if isinstance(scalar, pa.DictionaryScalar):
        value = scalar.value
    if not scalar.is_valid or not value.is_valid:
        return None
    return memoryview(value.as_buffer())
