"""The source of units: what token stores under a plan and packed datasets have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from packtool.arrays import Arrays
from packtool.plan import I64, Plan, Segments
from packtool.storage.names import SEGMENT

Tokens: TypeAlias = npt.NDArray[Any]
Units: TypeAlias = tuple[Segments | None, Tokens]
"""The segments of some units, padding included, or None where they are not known; and their tokens, (units, unit), with
their loss where the source has it (`packtool.writing.records`)."""


class Source(ABC):
    """The units of a plan with their tokens, read from any number of threads.

    Attributes:
        plan: whose units they are.
        dtype: of the tokens, or of records of tokens and loss.
        pad_id: what fills the last row.
        segments: number of segments, about; None where they are not known.
        loss: tells of the tokens of segments whether they train; None where all do, or where it moves with the tokens
            only.
    """

    loss: Callable[[Segments], npt.NDArray[np.uint8]] | None = None

    def __init__(self, plan: Plan, dtype: np.dtype[Any], pad_id: int, segments: int | None) -> None:
        self.plan = plan
        self.dtype = dtype
        self.pad_id = pad_id
        self.segments = segments

    @abstractmethod
    def prepare(self, arrays: Arrays) -> None:
        """Make the tables that `read` needs, in these arrays."""

    @abstractmethod
    def read(self, units: I64) -> Units:
        """Read any units, in the order given. What that needs in memory is in `memory_bytes`."""

    @abstractmethod
    def scan(self, first: int, last: int) -> Units:
        """Read units ``first:last`` of the plan, with no more in memory than they take."""

    @abstractmethod
    def release(self) -> None:
        """Release the memory that maps what was read."""

    @property
    def unit_bytes(self) -> int:
        """Bytes of the tokens of a unit."""
        return self.plan.unit * self.dtype.itemsize

    @property
    def row_bytes(self) -> int:
        """Bytes of the tokens of all rows."""
        return self.plan.rows * self.plan.sequence_length * self.dtype.itemsize

    @property
    def memory_bytes(self) -> int:
        """Memory that all of it would take, with its order."""
        return self.plan.units * (self.unit_bytes + 32) + (self.segments or 0) * SEGMENT.itemsize
