"""Arrays read by ranges: only what is asked for is fetched, and no copy is made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from packtool.places.bucket import PART_BYTES
from packtool.places.npy import HEADER_BYTES

if TYPE_CHECKING:
    from packtool.places.place import Place

GAP_BYTES = 1 << 18
"""What lies between two ranges is read with them up to this size: about what a connection carries while a request
would be on its way."""

I64 = npt.NDArray[np.int64]


def spans(first: I64, count: I64) -> tuple[I64, I64, I64]:
    """Join ranges to requests: neighbours together, none longer than `PART_BYTES` unless one range is.

    Args:
        first, count: of the ranges, ascending.

    Returns:
        First byte and number of bytes of each request, and the request of each range.

    >>> spans(np.array([0, 10, 1 << 20]), np.array([10, 5, 1]))
    (array([      0, 1048576]), array([15,  1]), array([0, 0, 1]))
    """
    end = first + count
    apart = np.empty(len(first), np.bool_)
    apart[:1] = True
    apart[1:] = (first[1:] - np.maximum.accumulate(end)[:-1] > GAP_BYTES) | (
        (end[1:] - first[0]) // PART_BYTES != (end[:-1] - first[0]) // PART_BYTES
    )
    request = np.cumsum(apart) - 1
    heads = np.flatnonzero(apart)
    begin = first[heads]
    stop = np.maximum.reduceat(end, heads) if len(heads) else end
    return begin, stop - begin, request


class RangedArray:
    """What readers ask of an array: its length, slices and items of its first axis, and another shape.

    Each of these is a copy, and costs requests: ask for many items at once.

    Args:
        place, name: of the file.
        dtype: of the items.
        shape: of the array.
    """

    def __init__(self, place: Place, name: str, dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
        self._place = place
        self._name = name
        self.dtype = dtype
        self.shape = shape
        self._width = dtype.itemsize * int(np.prod(shape[1:], dtype=np.int64))

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def nbytes(self) -> int:
        """Bytes of all items."""
        return self._width * len(self)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            first, last, step = index.indices(len(self))
            if step == 1:
                return self._slice(first, max(first, last))
            index = np.arange(first, last, step)
        return self.take(index)

    def take(self, indices: Any, axis: int | None = None, out: None = None, mode: str = "raise") -> Any:
        """Return items of the first axis, by their numbers from 0, as `numpy.take` does."""
        del axis, out, mode
        numbers = np.asarray(indices, np.int64)
        wrong = np.flatnonzero((numbers < 0) | (numbers >= len(self)))
        if len(wrong):
            raise IndexError(f"item {numbers.reshape(-1)[wrong[0]]} of {len(self)}")
        if not self._width or not numbers.size:
            return np.empty((*numbers.shape, *self.shape[1:]), self.dtype)
        wanted, where = np.unique(numbers.reshape(-1), return_inverse=True)
        parts = self._place.ranges(
            self._name, HEADER_BYTES + wanted * self._width, np.full(len(wanted), self._width, np.int64)
        )
        values = np.frombuffer(b"".join(parts), np.uint8).reshape(len(wanted), self._width)[where.reshape(-1)]
        return values.view(self.dtype).reshape(*numbers.shape, *self.shape[1:])

    def slices(self, first: I64, count: I64) -> npt.NDArray[Any]:
        """Return slices of the first axis, joined; none reaches beyond its end."""
        order = np.argsort(first, kind="stable")
        slices = self._place.ranges(self._name, HEADER_BYTES + first[order] * self._width, count[order] * self._width)
        parts = dict(zip(order.tolist(), slices, strict=True))
        return np.frombuffer(b"".join([parts[number] for number in range(len(parts))]), self.dtype)

    def reshape(self, *shape: int) -> RangedArray:
        """Group the same items in another way; -1 for the length that follows."""
        known = -int(np.prod(shape, dtype=np.int64)) if -1 in shape else 0
        total = int(np.prod(self.shape, dtype=np.int64))
        full = tuple(total // known if each == -1 and known else max(each, 0) for each in shape)
        return RangedArray(self._place, self._name, self.dtype, full)

    def _slice(self, first: int, last: int) -> npt.NDArray[Any]:
        begin, end = HEADER_BYTES + first * self._width, HEADER_BYTES + last * self._width
        at = np.arange(begin, end, PART_BYTES)
        parts = self._place.ranges(self._name, at, np.minimum(PART_BYTES, end - at))
        values = np.frombuffer(b"".join(parts), np.uint8)
        return values.view(self.dtype).reshape(last - first, *self.shape[1:])
