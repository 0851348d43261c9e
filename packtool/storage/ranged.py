"""Arrays of datasets in object stores of which only what is asked for is read: no file of them is made here."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from packtool.places.ranges import RangeReader
from packtool.storage.files import HEADER_BYTES


class RangedArray:
    """What readers ask of an array: its length, slices and items of its first axis, and another shape.

    Each of these is a copy, and costs requests: ask for many items at once.

    Args:
        reader: of the file.
        dtype: of the items.
        shape: of the array.
    """

    def __init__(self, reader: RangeReader, dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
        self._reader = reader
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
        """Items of the first axis, by their numbers from 0, as of `numpy.take`."""
        del axis, out, mode
        numbers = np.asarray(indices, np.int64)
        wrong = np.flatnonzero((numbers < 0) | (numbers >= len(self)))
        if len(wrong):
            raise IndexError(f"item {numbers.reshape(-1)[wrong[0]]} of {len(self)}")
        if not self._width or not numbers.size:
            return np.empty((*numbers.shape, *self.shape[1:]), self.dtype)
        found = self._reader.take(HEADER_BYTES + numbers.reshape(-1) * self._width, self._width)
        return found.view(self.dtype).reshape(*numbers.shape, *self.shape[1:])

    def reshape(self, *shape: int) -> RangedArray:
        """The same items, grouped in another way; -1 for the length that follows."""
        known = -int(np.prod(shape, dtype=np.int64)) if -1 in shape else 0
        total = int(np.prod(self.shape, dtype=np.int64))
        full = tuple(total // known if each == -1 and known else max(each, 0) for each in shape)
        return RangedArray(self._reader, self.dtype, full)

    def _slice(self, first: int, last: int) -> npt.NDArray[Any]:
        found = self._reader.range(HEADER_BYTES + first * self._width, (last - first) * self._width)
        return found.view(self.dtype).reshape(last - first, *self.shape[1:])
