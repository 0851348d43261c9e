"""The trainer's reader: rows, their segments, and training batches of them.

It needs NumPy and, to read manifests, msgspec and xxhash; it loads nothing heavier. docs/format.md has a complete
reader that needs NumPy alone.

>>> import packtool
>>> dataset = packtool.open("packed")            # doctest: +SKIP
>>> row = dataset[0]                             # doctest: +SKIP
>>> batch = dataset.batch([0, 1, 2, 3])          # doctest: +SKIP
>>> dataset.segments(0)                          # doctest: +SKIP
array([(0, 0, 812, 0), (1, 0, 212, 0)], dtype=[('document', '<i8'), ('start', '<u4'), ...])
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, overload

import numpy as np
import numpy.typing as npt

from packtool.blending.blend import Blend
from packtool.errors import UsageError
from packtool.options.kinds import PLACES, shown
from packtool.places.typed import places_of
from packtool.reading.batch import Batch, make_batch
from packtool.reading.blended_rows import BlendedRows, open_blend
from packtool.reading.column_fields import Names
from packtool.reading.dataset import BucketDataset, Dataset, open_recipe
from packtool.reading.recipe import CACHE_BYTES, SHARDS, Fetch
from packtool.reading.rows import Index, RowArray
from packtool.reading.sources import CacheOptions
from packtool.reading.stream import blend_of

__all__ = ["Batch", "BlendedRows", "BucketDataset", "Dataset", "Opened", "make_batch", "open"]


class Opened(Protocol):
    """What `open` returns, whatever it opens.

    A sequence of what is trained on: rows of tokens; or batches of rows, if a dataset has rows of several lengths.

    `Dataset` has the rows of a packed dataset, `BlendedRows` those of a blend, `BucketDataset` has batches.
    """

    @property
    def columns(self) -> Mapping[str, Names]:
        """The kept columns of documents by name, with the lists of categories; None for columns of numbers."""

    @property
    def sources(self) -> Sequence[str]:
        """What the numbers in the field `source` of a batch stand for: names of token stores, or sources of a blend."""

    def __len__(self) -> int:
        """Count the items: rows, or batches."""

    def __iter__(self) -> Iterator[RowArray]:
        """Iterate over the items."""

    def __getitem__(self, index: Index, /) -> Any:
        """Return the tokens of an item: (sequence_length) of a row, (rows, sequence_length) of a batch; or of several.

        Several rows are (rows, sequence_length), several batches a list.
        """

    @overload
    def batch(self, index: Index, *, fields: None = None, **options: Any) -> Batch: ...
    @overload
    def batch(self, index: Index, *, fields: Collection[str], **options: Any) -> Mapping[str, Any]: ...

    def segments(self, index: int) -> Any:
        """Return the segments of a row, or of each row of a batch, in a list."""

    def epoch(self, number: int, *, seed: int | None = None, repack: bool = False) -> Opened:
        """Return the same items in the order of an epoch. A blend has its epochs in it, and only number 0."""


def open(
    path: str | Path | Blend,
    *,
    dtype: npt.DTypeLike | None = None,
    cache: str | Path | None = None,
    cache_bytes: str | int = CACHE_BYTES,
    fetch: Fetch = SHARDS,
    stores: str | Path | Sequence[str | Path] = (),
) -> Opened:
    """Open a packed dataset for reading, or a blend of several datasets. Files are mapped when they are first read.

    Args:
        path: a directory, or a URL such as ``s3://bucket/packed``; or a blend: a TOML file or a `packtool.Blend`.
        dtype: of the tokens; by default as stored (uint16 or uint32), read-only and without copies. With ``"int64"``
            rows are copies, as a model's embedding takes them.
        cache: directory for files of a URL; by default the user's cache directory.
        cache_bytes: limit of a dataset's files in the cache; the files used longest ago are removed first.
        fetch: for a URL: ``"shards"``, whole files, checked by their checksums and kept in the cache; or ``"rows"``,
            only the rows that are read, by ranges, for orders that jump about in a dataset larger than the cache.
        stores: for a dataset without tokens, the token stores that it was packed from, in order, if they are not at the
            places in its manifest.

    Raises:
        DataError: the dataset is missing, unfinished or damaged; a token store that rows are gathered from is gone, or
            has changed.
        UsageError: neither a path, a URL nor a blend; the path is a token store; tokens can't have the type.
    """
    kind = _type_of_tokens(dtype)
    try:
        PLACES.parse(stores)
    except ValueError:
        remedy = f"give {PLACES.words}"
        raise UsageError("bad-option", f"{shown(stores)} can't be used", remedy=remedy, where="stores") from None
    blend = blend_of(path, "path")
    if blend is not None:
        if stores:
            what, remedy = "a blend names the stores of each of its sources", "write them in the blend"
            raise UsageError("option-not-taken", what, remedy=remedy, where="stores")
        return open_blend(blend, dtype=kind, cache=cache, cache_bytes=cache_bytes, fetch=fetch)
    assert not isinstance(path, Blend)
    return open_recipe(CacheOptions(cache, cache_bytes, fetch).recipe(path, places_of(stores), kind))


def _type_of_tokens(dtype: npt.DTypeLike | None) -> str | None:
    """Return a type that was asked for by its name; None for the one that is stored."""
    if dtype is None:
        return None
    try:
        return np.dtype(dtype).str
    except TypeError:
        remedy = "give int64, or leave it out for the type they are stored in"
        raise UsageError("bad-option", f"{shown(dtype)} is no type of NumPy", remedy=remedy, where="dtype") from None
