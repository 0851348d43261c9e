"""The segment table: segments as stored records and as columns, and the checks before anything is read by them.

All checks are vectorised, and read what is about to be used anyway. They raise, or leave no number that points outside
what it points into.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from packtool.errors import DataError, UsageError
from packtool.formats.names import SEGMENT
from packtool.places.place import Place
from packtool.planning.plan import INSERTED_EOS, Ints, Segments

_AGAIN = "make the dataset again, or copy it again"


def to_table(rows: Segments) -> npt.NDArray[Any]:
    """Convert segments to the stored table, without offsets."""
    table = np.empty(len(rows), SEGMENT)
    for name in SEGMENT.names or ():
        table[name] = getattr(rows, name)
    return table


def from_table(table: npt.NDArray[Any], offsets: Ints) -> Segments:
    """Convert stored segments to columns; `offsets` (rows + 1) are relative to the first row of the table."""
    return Segments(
        table["document"].astype(np.int64),
        table["start"].astype(np.int64),
        table["length"].astype(np.int64),
        table["repeated"].astype(np.int64),
        np.asarray(offsets, np.int64),
    )


def no_segments(place: Place) -> UsageError:
    """Return the error for a dataset that was written without the segment table that is needed."""
    return UsageError(
        "no-segments",
        "the dataset was written with --no-segments, so its document boundaries are not known",
        remedy="pack again without --no-segments",
        where=str(place),
    )


def require_rows(offsets: npt.NDArray[np.int64], segments: int, first_row: int, where: str) -> None:
    """Raise a DataError that names the first row that has no segments, or some outside a table of `segments`."""
    if not len(offsets):
        return
    if not (offsets[0] >= 0 and offsets[-1] <= segments and (np.diff(offsets) > 0).all()):
        wrong = np.flatnonzero((offsets[:-1] < 0) | (np.diff(offsets) < 1) | (offsets[1:] > segments))
        raise _bad_row(first_row + int(wrong[0]), "its segments lie outside the segment table", where)


def require_segments(
    table: npt.NDArray[Any],
    offsets: Ints,
    lengths: Ints | None,
    sequence_length: int,
    first_row: int | Ints,
    where: str,
) -> None:
    """Raise a DataError that names the first row with a segment outside its document, or that is not full.

    Args:
        table: of `SEGMENT`, the segments of these rows.
        offsets: rows + 1, relative to the table's first; already checked.
        lengths: of every document, EOS included; None where segments are not looked up in their documents.
        first_row: number of the first row, or of each row, for messages.
    """
    if not len(table):
        return
    document, length = table["document"], table["length"].astype(np.int64)
    end = table["start"] + length
    real = document >= 0
    inside = (document >= INSERTED_EOS) & (table["repeated"] <= length) & (length > 0)
    if lengths is not None:
        inside &= document < len(lengths)
    if lengths is not None and inside.all() and real.all():
        inside = end <= lengths[document]  # as in most shards: no padding, and nothing inserted
    else:
        if lengths is not None:
            held = inside & real
            inside[held] = end[held] <= lengths[document[held]]
        inside &= (document != INSERTED_EOS) | (length == 1)
    if not inside.all():
        row = int(np.searchsorted(offsets, np.flatnonzero(~inside)[0], side="right")) - 1
        raise _bad_row(_number(first_row, row), "a segment lies outside its document", where)
    full = np.add.reduceat(length, np.asarray(offsets[:-1])) == sequence_length
    if not full.all():
        row = int(np.flatnonzero(~full)[0])
        raise _bad_row(_number(first_row, row), "its segments do not add up to the sequence length", where)


def _number(first_row: int | Ints, row: int) -> int:
    return first_row + row if isinstance(first_row, int) else int(first_row[row])


def require_atoms(begins: npt.NDArray[np.int64], rows: int, where: str) -> None:
    """Raise a DataError unless the rows of a shard at which an atom begins are ascending, and inside the shard."""
    if len(begins) and not (begins[0] >= 0 and begins[-1] < rows and (np.diff(begins) > 0).all()):
        raise DataError("bad-segments", f"its atoms do not lie in its {rows} rows", remedy=_AGAIN, where=where)


def _bad_row(row: int, what: str, where: str) -> DataError:
    return DataError("bad-segments", f"row {row}: {what}", remedy=_AGAIN, where=where)
