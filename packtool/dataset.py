"""The trainer's reader: rows and their segments, memory-mapped, with NumPy only.

>>> import packtool
>>> dataset = packtool.open("packed")            # doctest: +SKIP
>>> row = dataset[0]                             # doctest: +SKIP
>>> dataset.segments(0)                          # doctest: +SKIP
array([(0, 0, 812, 0), (1, 0, 212, 0)], dtype=[('document', '<i8'), ('start', '<u4'), ...])
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy.typing as npt

from packtool.storage.packed import PackedBucket, PackedDataset, to_table


class Rows:
    """The rows of one length, in stored order.

    Attributes:
        sequence_length: tokens in a row.
    """

    def __init__(self, bucket: PackedBucket) -> None:
        self._bucket = bucket
        self.sequence_length = bucket.sequence_length

    def __len__(self) -> int:
        return self._bucket.rows

    def __getitem__(self, row: int) -> npt.NDArray[Any]:
        """The tokens of one row: a view of the memory-mapped shard. Negative rows count from the end."""
        row = self._index(row)
        tokens: npt.NDArray[Any] = self._bucket.tokens(row, row + 1)[0]
        return tokens

    def __iter__(self) -> Iterator[npt.NDArray[Any]]:
        for shard in self._bucket.shards:
            yield from shard

    def segments(self, row: int) -> npt.NDArray[Any]:
        """The pieces of one row, in order; document -1 is padding, -2 an EOS that the strategy inserted."""
        row = self._index(row)
        return to_table(self._bucket.segments(row, row + 1))

    def _index(self, row: int) -> int:
        index = row + len(self) if row < 0 else row
        if not 0 <= index < len(self):
            raise IndexError(f"row {row} of {len(self)}")
        return index


class Dataset(Rows):
    """A packed dataset of one sequence length.

    Attributes:
        manifest: everything the manifest says.
        pad_id, eos_id: token ids.
    """

    def __init__(self, packed: PackedDataset) -> None:
        super().__init__(packed.buckets[0])
        self.manifest = packed.manifest
        self.pad_id = packed.manifest.pad_id
        self.eos_id = packed.manifest.tokenizer.eos_id


class BucketDataset:
    """A packed dataset of several sequence lengths: `buckets` maps each length to its rows."""

    def __init__(self, packed: PackedDataset) -> None:
        self.manifest = packed.manifest
        self.pad_id = packed.manifest.pad_id
        self.eos_id = packed.manifest.tokenizer.eos_id
        self.buckets = {bucket.sequence_length: Rows(bucket) for bucket in packed.buckets}


def open(path: str | Path) -> Dataset | BucketDataset:
    """Open a packed dataset for reading.

    Raises:
        DataError: it is missing, unfinished or damaged.
        UsageError: it is a token store.
    """
    packed = PackedDataset(path)
    if len(packed.buckets) == 1 and not packed.manifest.buckets[0].directory:
        return Dataset(packed)
    return BucketDataset(packed)
