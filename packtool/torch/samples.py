"""Samples of a packed dataset as tensors: a map-style dataset, as PyTorch calls it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from torch.utils.data import get_worker_info

from packtool.errors import UsageError
from packtool.reading.batch import Batch
from packtool.reading.stream import Key, Stream
from packtool.torch.sending import Parcel, tensors

FIELDS = tuple(Batch.__annotations__)
"""What a batch holds, unless fewer fields are asked for."""


class Samples:
    """The samples of all epochs, for PyTorch's `DataLoader` with `collate`.

    A batch is made as a whole, by the worker, from the memory-mapped shards. Workers of any start method receive the
    path, not the tokens.

    Args:
        source, options: as of `packtool.reading.stream.Stream`.
        fields: of a batch, from `FIELDS`; by default all of them.

    Attributes:
        stream: where the samples come from.
    """

    def __init__(self, source: str | Path, *, fields: Sequence[str] = FIELDS, **options: Any) -> None:
        for name in fields:
            if name not in FIELDS:
                raise UsageError(
                    "bad-option", f"{name!r} is not a field", remedy=f"choose from {', '.join(FIELDS)}", where="fields"
                )
        self.stream = Stream(source, **options)
        self._fields = tuple(fields)

    def __len__(self) -> int:
        return len(self.stream)

    def __getitem__(self, key: Key) -> Mapping[str, Any]:
        """One sample, as a batch of one row (or all rows of a batch of a bucket)."""
        if self.stream.bucketed and not isinstance(key, tuple):
            return self.__getitems__([(key, row) for row in range(self.stream.rows_of(key))])
        return self.__getitems__([key])

    def __getitems__(self, keys: Sequence[Key]) -> Mapping[str, Any]:
        """A whole batch; in a worker, as it is sent."""
        away = get_worker_info() is not None
        batch: dict[str, Any] = {**self.stream.batch(keys, narrow=away)}
        chosen = {name: batch[name] for name in self._fields}
        return Parcel(chosen) if away else tensors(chosen)


def collate(batch: Any) -> Any:
    """What `Samples` hands out is a batch already."""
    if isinstance(batch, list) and len(batch) == 1:
        return batch[0]
    return batch
