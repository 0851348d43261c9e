"""The segment table: segments as stored records, and as columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from packtool.errors import UsageError
from packtool.places.place import Place
from packtool.plan import Ints, Segments
from packtool.storage.names import SEGMENT


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
