"""A blend as a sequence of rows."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import cached_property, partial
from typing import Any, cast

import numpy as np

from packtool.blending.blend import Blend
from packtool.blending.dealing import Dealing
from packtool.planning.plan import I64
from packtool.reading.batch import Batch
from packtool.reading.blend_sources import Sources, several_lengths
from packtool.reading.dataset import BucketDataset, open_recipe
from packtool.reading.recipe import Recipe, training_place
from packtool.reading.rows import Array, Index, number_of, numbers_of

_ROWS_AT_ONCE = 64  # that iteration reads at a time


class BlendedRows:
    """The rows of a blend, in the order in which they are trained on: a sequence, and batches of them.

    It pickles as what it was opened with.

    Args:
        blend: as it was written.
        dtype, options: as in `packtool.open`.

    Attributes:
        sources: their names; `source` in a batch is a place in this list.
        sequence_length: tokens in a row.
    """

    def __init__(self, blend: Blend, dtype: str | None = None, **options: Any) -> None:
        self._opened_with = blend, {"dtype": dtype, **options}
        self._sources = Sources(blend, **options)
        self._sources.require_paths()
        self._dtype = None if dtype is None else np.dtype(dtype)
        self.sources = list(self._sources.names)
        self.sequence_length = self._sources.sequence_length

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopened, self._opened_with

    def __len__(self) -> int:
        return self._sources.schedule.samples

    def __getitem__(self, index: Index) -> Array:
        """Return one row, (sequence_length), or several, (rows, sequence_length)."""
        if isinstance(index, int | np.integer):
            one: Array = self[[number_of(index, len(self), "row")]][0]
            return one
        tokens = self._sources.read(*self.origins(index), {"fields": ()})[0]
        return tokens if self._dtype is None else tokens.astype(self._dtype, copy=False)

    def __iter__(self) -> Iterator[Array]:
        for first in range(0, len(self), _ROWS_AT_ONCE):
            yield from self[first : first + _ROWS_AT_ONCE]

    def __repr__(self) -> str:
        what = f"{len(self)} rows of {self.sequence_length} tokens, of {', '.join(self.sources)}"
        return f"<packtool blend: {what}, {self._sources.blend.name}>"

    @cached_property
    def _dealing(self) -> Dealing:
        return Dealing(self._sources.schedule)

    def origins(self, index: Index) -> tuple[I64, I64]:
        """Return the source of each of some rows, and which of the source's rows it is, counted through its epochs."""
        return self._dealing.locate(numbers_of(index, len(self), "row"))

    def batch(self, index: Index, *, fields: Collection[str] | None = None, **options: Any) -> Batch:
        """Build a training batch of some rows.

        Args:
            fields: as in `packtool.reading.batch.make_batch`, and `source`; None for those that batches of the
                sources have by default, and `source`.
            options: as in `packtool.reading.batch.make_batch`.
        """
        options = {"fields": self._sources.fields if fields is None else fields, **options}
        return self._sources.read(*self.origins(index), options).batch(**options)


def open_blend(blend: Blend, **options: Any) -> BlendedRows | BucketDataset:
    """Open a blend: as a sequence of rows; of one dataset of several row lengths, as a sequence of its batches.

    Args:
        options: as in `packtool.open`.
    """
    source = several_lengths(blend, options)
    if source is None:
        return BlendedRows(blend, **options)
    place = partial(training_place, directory=options["cache"], size=options["cache_bytes"], fetch=options["fetch"])
    dtype = None if options["dtype"] is None else np.dtype(options["dtype"]).str
    dataset = open_recipe(Recipe(place(str(source.path)), dtype=dtype, stores=tuple(map(place, source.stores))))
    one = cast("BucketDataset", dataset)
    return one.epoch(0, seed=source.seed, batch_tokens=blend.batch_tokens, repack=source.repack, blend=blend)


def _reopened(blend: Blend, options: Mapping[str, Any]) -> BlendedRows:
    return BlendedRows(blend, **options)
