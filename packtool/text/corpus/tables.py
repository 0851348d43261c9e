"""What Parquet and Arrow share: one document a row, in one column or several, read in slices of bounded size."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from packtool.text.corpus.records import in_words
from packtool.text.corpus.rows import records_of
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


def first_row(batches: Iterable[Any]) -> dict[str, Any] | None:
    """Return the first row of the batches of a table; None if there is none, or it can't be read."""
    import pyarrow as pa

    try:
        for batch in batches:
            if len(batch):
                return row_of(pa.Table.from_batches([batch.slice(0, 1)]))
    except (pa.ArrowException, UnicodeDecodeError):
        pass  # reading it will tell
    return None


def row_of(table: Any) -> dict[str, Any]:
    """Return the first row of a table; of columns that JSON has nothing like, null."""
    row: dict[str, Any] = {}
    for name in table.column_names:
        row[name] = None
        try:
            row |= next(records_of(table.select([name]).slice(0, 1)), {})
        except (Fault, ValueError, OverflowError):  # the last: a time that Python has not
            continue
    return row
