"""The table of batches that the ``bucket`` shuffle makes of rows of several lengths."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from packtool.errors import DataError
from packtool.formats.schema import Bucket
from packtool.places.npy import FileEntry
from packtool.places.place import AGAIN, Place
from packtool.planning.plan import BATCH


def read_batches(place: Place, entry: FileEntry, buckets: Sequence[Bucket]) -> npt.NDArray[Any]:
    """Read the batches of the ``bucket`` shuffle, of `BATCH`.

    Raises:
        DataError: naming the first batch with rows that are not there, or that another one has.
    """
    table = place.array(entry, BATCH)[:]
    rows = {bucket.sequence_length: bucket.rows for bucket in buckets}
    most = np.array([rows.get(length, -1) for length in table["bucket"].tolist()], np.int64)
    first, count = table["first_row"], table["rows"]
    good = (first >= 0) & (count > 0) & (first <= most) & (count <= most - np.clip(first, 0, None))
    if good.all():
        order = np.lexsort((first, table["bucket"]))
        near = table[order]
        twice = (near["bucket"][1:] == near["bucket"][:-1]) & (
            near["first_row"][1:] < near["first_row"][:-1] + near["rows"][:-1]
        )
        good[order[1:]] = ~twice
    if not good.all():
        what = f"batch {int(np.flatnonzero(~good)[0])} names rows that are not there, or that another batch has"
        raise DataError("bad-order", what, remedy=AGAIN, where=place.where(entry.name))
    return table
