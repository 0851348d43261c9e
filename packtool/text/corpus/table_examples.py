"""Rows as a table may have them, made from the types of its columns alone: to tell what it holds before it is read."""

from __future__ import annotations

import io
from typing import Any

from packtool.text.corpus.tables import open_arrow, open_parquet

UNSEEN = "…"
"""A value of which only the column is known."""


def example_row(file: io.RawIOBase, format: str) -> dict[str, Any]:
    """Return a row as a table may have it, from its columns alone.

    Raises:
        Fault: damaged.
    """
    if format == "parquet":
        return example_of(open_parquet(file).schema_arrow)
    opened, _ = open_arrow(file)
    return example_of(opened.schema)


def example_of(fields: Any) -> dict[str, Any]:
    """Return an object that has these fields of Arrow, with values of their types.

    >>> import pyarrow as pa
    >>> example_of(pa.schema([("id", pa.int64()), ("turns", pa.list_(pa.struct([("role", pa.string())])))]))
    {'id': 0, 'turns': [{'role': '…'}]}
    """
    return {field.name: _example(field.type) for field in fields}


def _example(kind: Any) -> Any:
    """Return a value of a type of Arrow."""
    from pyarrow import types

    if types.is_struct(kind):
        return example_of(kind)
    if types.is_nested(kind) and hasattr(kind, "value_type"):
        return [_example(kind.value_type)]
    if types.is_null(kind):
        return None
    if types.is_boolean(kind):
        return False
    if types.is_integer(kind) or types.is_floating(kind):
        return 0
    return UNSEEN
