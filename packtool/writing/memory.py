"""Divide the memory that a user grants: what lies in it, whether tokens move once or twice, and in what portions."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from packtool.engines import Engine
from packtool.errors import UsageError
from packtool.planning.arrays import IN_MEMORY, Arrays
from packtool.support.sizes import plural, show_bytes
from packtool.writing.array_files import temporary_arrays

if TYPE_CHECKING:  # which loads pyarrow
    from packtool.rows.unit_source import UnitSource

DOCUMENT_BYTES = 64
"""Memory that planning takes for a document, at most, all of its arrays taken together."""
_BLOCK_BYTES = 1 << 24
_MOST_BITS = 14
_UNIT_BYTES = 256  # working memory for a unit, without its tokens and segments
_SEGMENT_BYTES = 128  # working memory for a segment


@dataclass(frozen=True)
class Budget:
    """The resources that one run may take."""

    memory: int  # bytes for tokens, for all workers together
    engine: Engine  # engine whose workers they are
    in_order: bool = False  # the input lies in a store, partly here: it is read in order, whatever the memory

    def arrays_for(self, documents: int, work: Path) -> AbstractContextManager[Arrays]:
        """Choose where arrays of this many documents lie: in memory, or in a directory in `work` for the block."""
        fits = self.engine.shares_memory and documents * DOCUMENT_BYTES <= self.memory
        return nullcontext(IN_MEMORY) if fits else temporary_arrays(work)

    def holds(self, source: UnitSource) -> bool:
        """Return whether all of it fits, and may be read in any order."""
        return not self.in_order and source.memory_bytes <= self.memory

    def partition_bits(self, source: UnitSource) -> int:
        """Return how many top bits of a key name its partition, so that each worker can hold one and sort it.

        Raises:
            UsageError: that would be more partitions than a file system takes gladly.
        """
        workers = self.engine.workers
        wanted = 4 * workers * source.memory_bytes
        if wanted // self.memory >> _MOST_BITS:
            raise UsageError(
                "memory-too-small",
                f"{show_bytes(self.memory)} for {plural(workers, 'worker')} is too little to shuffle this dataset"
                f"{_without_unit(self.memory)}",
                remedy=f"give at least {show_bytes((wanted >> _MOST_BITS) + 1)}, or fewer --workers",
                where="--memory",
            )
        return max(1, (wanted // self.memory).bit_length())

    def block_units(self, source: UnitSource) -> int:
        """Return how many units a worker reads at a time in the first pass."""
        block = min(_BLOCK_BYTES, self.memory // (8 * self.engine.workers))
        # Of short documents the segments take more than the tokens.
        segments = (source.segments or 0) // max(1, source.plan.units)
        return max(1, block // (source.unit_bytes + _UNIT_BYTES + segments * _SEGMENT_BYTES))


def _without_unit(size: int) -> str:
    """Say how a small number was read, as it may have been meant in gigabytes.

    >>> _without_unit(8)
    '; a number without a unit is bytes, and 8 GiB are written 8GiB'
    """
    if size >= 1 << 20:
        return ""
    return f"; a number without a unit is bytes, and {size} GiB are written {size}GiB"
