"""Columns of documents in batches, as fields `column.NAME`: a value for every segment.

In a blend every source has columns of its own. Segments of a source that lacks a column have a missing value. A column
of categories has one list of names for all sources of a blend, and its values are places in that list.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from packtool.errors import UsageError
from packtool.formats.kept_columns import absent
from packtool.formats.names import CATEGORY, MISSING, NUMBER
from packtool.options.check import suggest

PREFIX = "column."
"""The beginning of the name of a field that is a column."""

Values = npt.NDArray[Any]
Names = Sequence[str] | None
"""The list of names of a column of categories; None for numbers."""


def columns_in(fields: Iterable[str]) -> list[str]:
    """Return the names of the columns among the fields of a batch.

    >>> columns_in(("labels", "column.score", "column.meta.lang"))
    ['score', 'meta.lang']
    """
    return [field.removeprefix(PREFIX) for field in fields if field.startswith(PREFIX)]


def require_columns(fields: Iterable[str], existing: Collection[str]) -> None:
    """Refuse unknown columns among the fields of a batch.

    Raises:
        UsageError: with the first unknown column, and the existing columns.
    """
    for name in columns_in(fields):
        if name in existing:
            continue
        if existing:
            what = f"there is no column {name!r}; there are {', '.join(existing)}"
            remedy = suggest(name, list(existing))
        else:
            what, remedy = f"there is no column {name!r}", f"pack again with --keep={name or 'FIELD'}"
        raise UsageError("unknown-column", what, remedy=remedy, where="fields")


class BlendedColumns:
    """The columns of several datasets; a column has one list of names for all of them.

    Args:
        sources: the columns of each dataset with their lists of names, by the name of the source.

    >>> both = BlendedColumns({"a": {"lang": ["de", "fr"]}, "b": {"lang": ["en", "fr"], "score": None}, "c": {}})
    >>> both.names
    {'lang': ['de', 'en', 'fr'], 'score': None}
    >>> both.translated("lang", "b", np.array([0, 1, -1], CATEGORY)), both.translated("score", "a", None, 2)
    (array([ 1,  2, -1], dtype=int32), array([nan, nan]))
    """

    def __init__(self, sources: Mapping[str, Mapping[str, Names]]) -> None:
        self._sources = sources
        self.names: dict[str, Names] = {}  # the joined lists of names, by column
        self._differ: dict[str, UsageError] = {}
        self._tables: dict[tuple[str, str], npt.NDArray[np.int32]] = {}
        for source in sources:
            for name in sources[source]:
                if name not in self.names and name not in self._differ:
                    self._add(name)

    def _add(self, name: str) -> None:
        """Join the lists of names of a column."""
        lists = {source: columns[name] for source, columns in self._sources.items() if name in columns}
        numbers = [source for source, names in lists.items() if names is None]
        categories = [source for source, names in lists.items() if names is not None]
        if numbers and categories:
            what = f"column {name} has numbers in {numbers[0]}, and categories in {categories[0]}"
            remedy = f"pack one of them again, with --keep={name} or --keep={name}:number in both"
            self._differ[name] = UsageError("sources-differ", what, remedy=remedy, where="fields")
            return
        if numbers:
            self.names[name] = None
            return
        joined = sorted({text for names in lists.values() for text in names or ()})
        self.names[name] = joined
        place_of = {text: place for place, text in enumerate(joined)}
        for source, names in lists.items():
            places = [place_of[text] for text in names or ()]
            # -1, a missing value, is the index of the last entry, and stays missing.
            self._tables[source, name] = np.array([*places, MISSING], CATEGORY)

    def require(self, fields: Iterable[str]) -> None:
        """Refuse columns that no source has, or that are numbers in one and categories in another.

        Raises:
            UsageError: with the name of the column.
        """
        for name in columns_in(fields):
            if name in self._differ:
                raise self._differ[name]
        require_columns(fields, self.names)

    def empty(self, name: str) -> Values:
        """Return an empty array of values of a column."""
        return np.empty(0, self._dtype(name))

    def translated(self, name: str, source: str, values: Values | None, count: int = 0) -> Values:
        """Return values of a source's column with the numbers of the blend's list of names.

        Args:
            values: with the numbers of the source's list; None if the source has no such column.
            count: number of missing values to return in that case.
        """
        dtype = self._dtype(name)
        if values is None:
            return np.full(count, absent(dtype), dtype)
        if dtype == NUMBER:
            return values
        return self._tables[source, name][values]

    def _dtype(self, name: str) -> np.dtype[Any]:
        if self.names[name] is None:
            return NUMBER
        return CATEGORY
