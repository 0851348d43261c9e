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

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from packtool.blending.blend import Blend, names_blend
from packtool.errors import UsageError
from packtool.places.typed import places_of
from packtool.reading.batch import Batch, make_batch
from packtool.reading.blended_rows import BlendedRows, open_blend
from packtool.reading.dataset import BucketDataset, Dataset, open_recipe
from packtool.reading.recipe import CACHE_BYTES, SHARDS
from packtool.reading.sources import CacheOptions

__all__ = ["Batch", "BlendedRows", "BucketDataset", "Dataset", "make_batch", "open"]


def open(
    path: str | Path | Blend,
    *,
    dtype: Any = None,
    cache: str | Path | None = None,
    cache_bytes: str | int = CACHE_BYTES,
    fetch: str = SHARDS,
    stores: str | Path | Sequence[str | Path] = (),
) -> Dataset | BucketDataset | BlendedRows:
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
        UsageError: the path is a token store.
    """
    if isinstance(path, Blend) or names_blend(path):
        if stores:
            what, remedy = "a blend names the stores of each of its sources", "write them in the blend"
            raise UsageError("option-not-taken", what, remedy=remedy, where="stores")
        blend = path if isinstance(path, Blend) else Blend.read(path)
        return open_blend(blend, dtype=dtype, cache=cache, cache_bytes=cache_bytes, fetch=fetch)
    kind = None if dtype is None else np.dtype(dtype).str
    return open_recipe(CacheOptions(cache, cache_bytes, fetch).recipe(path, places_of(stores), kind))
