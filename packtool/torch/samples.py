"""Samples of a packed dataset as tensors: a map-style dataset in PyTorch's terms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from torch.utils.data import get_worker_info

from packtool.reading.batch import FIELDS
from packtool.reading.stream import Key, Stream
from packtool.torch.sending import Parcel, end_with_parent, tensors


class Samples:
    """The samples of all epochs, for PyTorch's `DataLoader` with `collate`.

    A batch is made as a whole, by the worker, from the memory-mapped shards. Workers of any start method receive the
    path, not the tokens.

    Args:
        source, options: as of `packtool.reading.stream.Stream`.
        fields: of a batch, from `packtool.reading.batch.FIELDS`; by default all of them.

    Attributes:
        stream: where the samples come from.
    """

    def __init__(self, source: str | Path, *, fields: Sequence[str] = FIELDS, **options: Any) -> None:
        self.stream = Stream(source, fields=tuple(fields), **options)
        self._watched = False

    def __len__(self) -> int:
        return len(self.stream)

    def __getitem__(self, key: Key) -> Mapping[str, Any]:
        """Return one sample, as a batch of one row (or all rows of a batch of a bucket)."""
        if self.stream.bucketed and not isinstance(key, tuple):
            return self.__getitems__([(key, row) for row in range(self.stream.rows_of(key))])
        return self.__getitems__([key])

    def __getitems__(self, keys: Sequence[Key]) -> Mapping[str, Any]:
        """Return a whole batch; in a worker, in the form it is sent in."""
        if get_worker_info() is None:
            return tensors({**self.stream.batch(keys)})
        if not self._watched:
            end_with_parent()
            self._watched = True
        return Parcel({**self.stream.batch(keys, narrow=True)})


def collate(batch: Any) -> Any:
    """Return the batch that `Samples` made."""
    if isinstance(batch, list) and len(batch) == 1:
        return batch[0]
    return batch
