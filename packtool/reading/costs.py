"""The costs of rows in attention: the number of query-key pairs within documents."""

from __future__ import annotations

import secrets
from dataclasses import replace
from pathlib import Path

import numpy as np

from packtool.planning.plan import I64
from packtool.planning.shuffling.balance import pairs_of
from packtool.reading.dataset import open_recipe
from packtool.reading.recipe import Recipe
from packtool.reading.rows import Rows

_DIRECTORY = "row-pairs"
"""Directory in the cache. Its files have the digest of a manifest in their names: copies of a dataset share them."""
_ROWS_AT_ONCE = 1 << 13  # bounds the memory for segments


class RowCosts:
    """Counts the pairs of a dataset's rows. The counts of stored rows are computed once, and kept in the cache.

    Args:
        recipe: of the dataset.
        multiple: documents begin at multiples of this many tokens; padding up to the next multiple attends, too.
        cache: directory of the cache.
    """

    def __init__(self, recipe: Recipe, multiple: int, cache: Path) -> None:
        self._recipe = recipe
        self._multiple = multiple
        self._cache = cache
        self._kept: dict[int, I64] = {}

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_kept": {}}

    def of(self, rows: Rows, numbers: I64) -> I64:
        """Count the pairs of some rows, by their numbers in the order of `rows`: (rows).

        Raises:
            UsageError: the dataset was written with ``--no-segments``.
        """
        stored = rows.stored_numbers(numbers)
        if stored is None:  # these rows are made of parts of stored rows, whose counts do not apply
            return row_pairs(rows, numbers, self._multiple)
        length = rows.sequence_length
        if length not in self._kept:
            whole = open_recipe(replace(self._recipe, epoch=None)).buckets[length]
            file = self._cache / _DIRECTORY / f"{self._recipe.digest}-{length}.npy"
            self._kept[length] = _kept_pairs(whole, self._multiple, file)
        return self._kept[length][stored]


def row_pairs(rows: Rows, numbers: I64, multiple: int = 1) -> I64:
    """Count query-key pairs of some rows, as `pairs_of` does, from their segments.

    Raises:
        UsageError: the dataset was written with ``--no-segments``.
    """
    pairs = np.empty(len(numbers), np.int64)
    for first in range(0, len(numbers), _ROWS_AT_ONCE):
        part = slice(first, first + _ROWS_AT_ONCE)
        pairs[part] = pairs_of(rows.segments_of(numbers[part]), multiple)
    return pairs


def _kept_pairs(rows: Rows, multiple: int, file: Path) -> I64:
    """Return the pairs of all rows in stored order, from their file; without one, count them and try to write it."""
    try:
        kept: I64 = np.load(file, mmap_mode="r")
        if kept.shape == (len(rows),) and kept.dtype == np.int64:
            return kept
    except (OSError, ValueError, EOFError):
        pass  # not there, or damaged
    pairs = row_pairs(rows, np.arange(len(rows)), multiple)
    unfinished = file.with_name(f"{file.name}.{secrets.token_hex(4)}")  # renamed when whole: a reader maps the file
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with unfinished.open("xb") as out:
            np.save(out, pairs)
        unfinished.replace(file)
    except OSError:
        unfinished.unlink(missing_ok=True)  # without a cache the pairs are counted in every run
    return pairs
