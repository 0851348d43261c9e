"""The columns that a packed dataset keeps of its documents: numbers or categories, one value for each document.

A column is `column-NNNNN.npy`, next to the manifest, in the order of `lengths.npy`. One of categories has places in a
list of names, `categories-NNNNN.json`, whose names are different and sorted by code points.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from packtool.errors import DataError
from packtool.formats.names import CATEGORY, MISSING, MOST_CATEGORIES, NUMBER
from packtool.formats.on_demand import open_arrays
from packtool.formats.schema import KeptColumn, OtherFile
from packtool.formats.unchanged import Unchanged
from packtool.places.place import DATASET_AGAIN, MappedFile, Place
from packtool.planning.plan import Ints
from packtool.support.decoding import from_json


def absent(dtype: npt.DTypeLike) -> float:
    """Return the number that stands for a missing value in a column of this type.

    >>> absent(NUMBER), absent(CATEGORY)
    (nan, -1)
    """
    if np.dtype(dtype) == NUMBER:
        return float("nan")
    return MISSING


def is_absent(values: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Mark the lacking values of a column.

    >>> is_absent(np.array([0.5, float("nan")])), is_absent(np.array([3, MISSING], CATEGORY))
    (array([False,  True]), array([False,  True]))
    """
    lacking: npt.NDArray[np.bool_] = values == MISSING
    if values.dtype == NUMBER:
        lacking = np.isnan(values)
    return lacking


class KeptColumns:
    """The columns of one dataset, each opened when it is first read.

    Args:
        place: of the dataset.
        entries: of the columns, from its manifest.
        unchanged: the dataset that files must be of, however late they are opened; None where nobody looks.
    """

    def __init__(self, place: Place, entries: Sequence[KeptColumn], unchanged: Unchanged | None = None) -> None:
        self._place = place
        self.entries = {entry.name: entry for entry in entries}
        self._unchanged = unchanged
        self._values: dict[str, npt.NDArray[Any]] = {}
        self._categories: dict[str, list[str]] = {}

    @property
    def names(self) -> list[str]:
        """The names of the columns, in the order in which they were asked for."""
        return list(self.entries)

    def dtype(self, name: str) -> np.dtype[Any]:
        """Return the type of the values of a column: `NUMBER` or `CATEGORY`."""
        if self.entries[name].categories is None:
            return NUMBER
        return CATEGORY

    def values(self, name: str) -> npt.NDArray[Any]:
        """Return a column, mapped: (documents)."""
        if name not in self._values:
            entry = self.entries[name].values
            [self._values[name]] = open_arrays(self._place, [entry], self.dtype(name), unchanged=self._unchanged)
        return self._values[name]

    def categories(self, name: str) -> list[str] | None:
        """Return the list of names of a column; None for numbers.

        Raises:
            DataError: the file is damaged, or no such list.
        """
        entry = self.entries[name].categories
        if entry is None:
            return None
        if name not in self._categories:
            self._categories[name] = self._read_categories(entry)
        return self._categories[name]

    def of(self, name: str, documents: Ints) -> npt.NDArray[Any]:
        """Return the values of some documents; `absent` for a number below 0, as of padding.

        Raises:
            DataError: no such document, or a value that is no place in the list of names.
        """
        column = self.values(name)
        is_document = documents >= 0
        numbers = documents[is_document]
        if len(numbers) and int(numbers.max()) >= len(column):
            what = f"its rows name document {int(numbers.max())}, but column {name} has {len(column)} values"
            raise DataError("bad-segments", what, remedy=DATASET_AGAIN, where=str(self._place))
        values = np.take(column, numbers)
        self.require_listed(name, values)
        out = np.full(len(documents), absent(column.dtype), column.dtype)
        out[is_document] = values
        return out

    def require_listed(self, name: str, values: npt.NDArray[Any]) -> None:
        """Raise a DataError where values of a column of categories are no places in its list of names."""
        categories = self.categories(name)
        if categories is None or not len(values):
            return
        for value in (int(values.min()), int(values.max())):
            if not MISSING <= value < len(categories):
                what = f"column {name} has the value {value}, but {len(categories)} names"
                where = self._place.where(self.entries[name].values.name)
                raise DataError("bad-columns", what, remedy=DATASET_AGAIN, where=where)

    def files(self) -> Iterator[MappedFile]:
        """Yield the files of all values."""
        for name, entry in self.entries.items():
            yield MappedFile(self._place, entry.values, self.values(name))

    def _read_categories(self, entry: OtherFile) -> list[str]:
        def read() -> bytes:
            return self._place.checked(entry)

        raw = read() if self._unchanged is None else self._unchanged.opened(read)
        try:
            names = from_json(raw, list[str])
        except ValueError as error:
            raise self._bad_list(entry, f"no list of names: {error}") from None
        if names != sorted(set(names)) or len(names) > MOST_CATEGORIES:
            raise self._bad_list(entry, f"no sorted list of at most {MOST_CATEGORIES:,} different names")
        return names

    def _bad_list(self, entry: OtherFile, what: str) -> DataError:
        return DataError("bad-columns", what, remedy=DATASET_AGAIN, where=self._place.where(entry.name))
