"""Tokens of units, copied out of the shards of a packed dataset in any order."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from packtool.plan import I64
from packtool.storage.packed import PackedBucket
from packtool.writing.gather import Gatherer

_WIDE = 64  # bytes; units from here on are moved by memory copies, narrower ones by NumPy


class UnitReader:
    """Copies units of equal size out of the shards of one bucket.

    Args:
        bucket: what holds the rows.
        unit: tokens in a unit; divides the sequence length.
    """

    def __init__(self, bucket: PackedBucket, unit: int) -> None:
        self._unit = unit
        self._shards = [shard.reshape(-1) for shard in bucket.shards]
        self._bases = bucket.first_rows * (bucket.sequence_length // unit)
        self._dtype = bucket.dtype
        # For `copy` alone, which needs no documents and no padding.
        self._gather = Gatherer(self._shards, lambda d: d, dtype=self._dtype, pad_id=0, eos_id=0, longest_fill=1)

    def __call__(self, units: I64) -> npt.NDArray[Any]:
        """The tokens of these units, (units, unit)."""
        if len(self._shards) == 1:
            return np.take(self._shards[0].reshape(-1, self._unit), units, axis=0)
        shard = np.searchsorted(self._bases, units, side="right") - 1
        place = units - self._bases[shard]
        if self._unit * self._dtype.itemsize >= _WIDE:
            return self._gather.copy(shard, place * self._unit, np.full(len(units), self._unit)).reshape(-1, self._unit)
        out = np.empty((len(units), self._unit), self._dtype)
        for number, tokens in enumerate(self._shards):
            mine = np.flatnonzero(shard == number)
            out[mine] = np.take(tokens.reshape(-1, self._unit), place[mine], axis=0)
        return out
