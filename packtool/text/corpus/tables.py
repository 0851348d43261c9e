"""What Parquet and Arrow share: one document a row, in one column or several, read in slices of bounded size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from packtool.text.corpus.records import in_words
from packtool.text.corpus.rows import is_bytes, is_text, records_of
from packtool.text.faults import Fault

_SLICE_BYTES = 1 << 22
_SLICE_ROWS = 4096
"""Most bytes and rows of a table that are read at once."""


def slice_rows(rows: int, size: int) -> int:
    """Return the number of rows to read at once, of so many rows that take `size` bytes."""
    return max(1, min(_SLICE_ROWS, _SLICE_BYTES * rows // max(size, 1)))


def damaged(kind: str, error: Exception, lost: str = "") -> Fault:
    """Return the fault of a file that Arrow can't read."""
    return Fault("damaged-file", f"not a whole {kind} file: {in_words(error)}{lost}")


def is_looked_at(kind: Any) -> bool:
    """Return whether the first value of a column of this type is read, to tell a text from a conversation.

    Scalars are, and lists and objects with texts in them. Bytes may be a video and numbers a sound, which take long to
    read: of these the type says enough.

    >>> import pyarrow as pa
    >>> is_looked_at(pa.list_(pa.string())), is_looked_at(pa.binary()), is_looked_at(pa.list_(pa.float32()))
    (True, False, False)
    """
    from pyarrow import types

    leaves = list(_leaves(kind))
    if any(map(is_bytes, leaves)) or any(map(types.is_fixed_size_binary, leaves)):
        return False
    return not types.is_nested(kind) or any(map(is_text, leaves))


def _leaves(kind: Any) -> Iterator[Any]:
    """Yield the types that a type consists of."""
    import pyarrow as pa

    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    if isinstance(kind, pa.DictionaryType):
        kind = kind.value_type
    if not kind.num_fields:
        yield kind
    for number in range(kind.num_fields):
        yield from _leaves(kind.field(number).type)


def _like(kind: Any) -> Any:
    """Return a value such as those of a type."""
    from pyarrow import types

    if types.is_struct(kind):
        return row_like(kind)
    if types.is_nested(kind) and hasattr(kind, "value_type"):
        return [_like(kind.value_type)]
    if is_text(kind):
        return ""
    if is_bytes(kind) or types.is_fixed_size_binary(kind):
        return b""
    return 0


def row_like(schema: Iterable[Any]) -> dict[str, Any]:
    """Return an object such as those with these fields."""
    row = {}
    for field in schema:
        row[field.name] = _like(field.type)
    return row


def first_row(schema: Any, batches: Iterable[Any]) -> dict[str, Any] | None:
    """Return the first row of a table; None if there is none, or it can't be read.

    Args:
        schema: of all columns. Of columns that are not among the batches, the row has a value like theirs.
    """
    import pyarrow as pa

    try:
        for batch in batches:
            if len(batch):
                return row_like(schema) | row_of(pa.Table.from_batches([batch.slice(0, 1)]))
    except (pa.ArrowException, UnicodeDecodeError):
        pass  # reading it will tell
    return None


def row_of(table: Any) -> dict[str, Any]:
    """Return the first row of a table; of columns that JSON has nothing like, null.

    Of several columns of one name, it has the last: if they are read, that is refused.
    """
    row: dict[str, Any] = {}
    for number, name in enumerate(table.column_names):
        row[name] = None
        try:
            row |= next(records_of(table.select([number]).slice(0, 1)), {})
        except (Fault, ValueError, OverflowError):  # the last: a time that Python has not
            continue
    return row
