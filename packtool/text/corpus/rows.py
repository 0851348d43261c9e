"""Turn the rows of Arrow's tables, as Parquet and `datasets` store them, into the values that JSON has."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from packtool.text.corpus.records import text_in
from packtool.text.faults import Fault

Reader = Callable[[Any], Any]
"""Turns a value as Arrow gives it to Python into one of JSON."""


_OF_MESSAGES = ("role", "content", "from", "value", "tool_calls", "function_call")
"""Fields of messages that templates read."""


def reader_of(kind: Any, column: str, *, beside: bool = False) -> Reader | None:
    """Return the function that makes JSON of the values of a type; None if Python's values are JSON already.

    Every row of a table has all fields of its structs, so a field that a record lacked is null: null fields are left
    out, at any depth. The elements of lists stay, and so do nulls inside of `arrow.json`, which are the record's own.

    Args:
        kind: the type.
        column: where it stands, for messages.
        beside: it holds messages, beside whose text there may be what JSON has not: that is left out.

    Raises:
        Fault: JSON has nothing like it.

    >>> import pyarrow as pa
    >>> reader_of(pa.struct([("x", pa.int64()), ("y", pa.list_(pa.string()))]), "a")({"x": None, "y": ["b", None]})
    {'y': ['b', None]}
    """
    from pyarrow import types

    read: Reader | None = None
    if is_json(kind):
        read = _or_null(partial(_parsed, column))
    elif types.is_dictionary(kind):
        read = reader_of(kind.value_type, column)
    elif types.is_map(kind):
        read = _map(reader_of(kind.item_type, column))
    elif types.is_struct(kind):
        read = _struct(_readers(kind, column, beside=beside))
    elif types.is_nested(kind) and hasattr(kind, "value_type"):
        read = _list(reader_of(kind.value_type, column, beside=beside))
    elif is_bytes(kind):
        read = _or_null(partial(text_in, where=f"column {column!r}: "))
    elif types.is_float16(kind) or types.is_float32(kind):
        narrow = kind.to_pandas_dtype()
        read = _or_null(lambda value: float(str(narrow(value))))  # 0.1, where Python's wider number is not
    elif not _is_of_json(kind):
        raise Fault("bad-field", f"column {column!r} holds {kind}, which JSON has not", "cast it to strings")
    return read


def _readers(kind: Any, column: str, *, beside: bool) -> dict[str, Reader | None]:
    """Return what reads each field of a struct; see `reader_of`."""
    readers: dict[str, Reader | None] = {}
    for field in kind:
        try:
            readers[field.name] = reader_of(field.type, f"{column}.{field.name}")
        except Fault:
            if not beside or field.name in _OF_MESSAGES:
                raise
    return readers


def is_json(kind: Any) -> bool:
    """Return whether it is Arrow's type of JSON, as which `datasets` stores what differs from record to record."""
    from pyarrow import JsonType

    return isinstance(kind, JsonType)


def is_text(kind: Any) -> bool:
    """Return whether it is a type of texts."""
    from pyarrow import types

    return is_any(kind, types.is_string, types.is_large_string, types.is_string_view)


def is_any(kind: Any, *checks: Callable[[Any], bool]) -> bool:
    """Return whether one of Arrow's checks of types holds."""
    return any(check(kind) for check in checks)


def is_bytes(kind: Any) -> bool:
    """Return whether it is a type of bytes of any length, which may be texts."""
    from pyarrow import types

    return is_any(kind, types.is_binary, types.is_large_binary, types.is_binary_view)


def _is_of_json(kind: Any) -> bool:
    from pyarrow import types

    return is_text(kind) or is_any(kind, types.is_null, types.is_boolean, types.is_integer, types.is_float64)


def records_of(table: Any) -> Iterator[dict[str, Any]]:
    """Yield the rows of a table as objects of JSON, without what is null.

    Args:
        table: a `pyarrow.Table`. Columns of scalars stay as Python has them.

    Raises:
        Fault: JSON has nothing like what it holds.
    """
    from pyarrow import types

    columns = []
    for name, column in zip(table.column_names, table.columns, strict=True):
        values = column.to_pylist()
        if types.is_nested(column.type) or is_json(column.type):
            read = reader_of(column.type, name)
            if read is not None:
                values = list(map(read, values))
        columns.append(values)
    for row in zip(*columns, strict=True):
        yield {name: value for name, value in zip(table.column_names, row, strict=True) if value is not None}


def _or_null(read: Reader) -> Reader:
    return lambda value: None if value is None else read(value)


def _list(read: Reader | None) -> Reader | None:
    return None if read is None else _or_null(lambda values: list(map(read, values)))


def _struct(readers: dict[str, Reader | None]) -> Reader:
    def fields(value: dict[str, Any] | None) -> dict[str, Any] | None:
        if value is None:
            return None
        kept = {name: item for name, item in value.items() if item is not None and name in readers}
        for name, item in kept.items():
            read = readers[name]
            if read is not None:
                kept[name] = read(item)
        return kept

    return fields


def _map(read: Reader | None) -> Reader:
    """Return what makes an object of the pairs of a map, as Spark writes JSON's objects. A key is there, or not."""

    def entries(pairs: list[tuple[Any, Any]] | None) -> dict[str, Any] | None:
        if pairs is None:
            return None
        found = {}
        for key, value in pairs:
            found[str(key)] = read(value) if read is not None else value
        return found

    return entries


def _parsed(column: str, text: str) -> Any:
    """Parse the JSON of one value of a column."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise Fault("invalid-utf8", f"column {column!r}: holds text that is not valid JSON", "fix the record") from None
