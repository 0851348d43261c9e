"""Work with the values of fields that were kept with documents, as Arrow has them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from packtool.planning.plan import Mask


def first_unread(values: Any, type_: pa.DataType) -> int:
    """Return the place of the first value that can't be read as of a type; there is one.

    >>> first_unread(pa.array(["1", None, "b", "2", "c"]), pa.float64())
    2
    """
    low, high = 0, len(values) - 1  # it is among these
    while low < high:
        middle = (low + high) // 2
        try:
            values[low : middle + 1].cast(type_)
            low = middle + 1
        except pa.ArrowInvalid:
            high = middle
    return low


def mask_of(values: Any) -> Mask:
    """Return booleans of Arrow as an array.

    >>> mask_of(pa.array([True, False]))
    array([ True, False])
    """
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    mask: Mask = values.to_numpy(zero_copy_only=False)
    return mask
