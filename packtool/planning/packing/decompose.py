"""Dataset decomposition: each document cut into powers of two, longest first, one bucket for each power.

No padding and no row of two documents; short rows are many, and attention in them is cheap.
Paper: Dataset Decomposition (Pouransari et al., 2024), cited by Bucket Pre-training is All You Need.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from packtool.errors import UsageError
from packtool.planning.arrays import IN_MEMORY, Arrays, blocks
from packtool.planning.packing.strategy import PackOptions, Strategy
from packtool.planning.plan import I64, Ints, Plan, Segments, index_type


class PowerPlan(Plan):
    """Rows of one power of two; a row is a segment of one document.

    Args:
        sequence_length: tokens in a row.
        lengths: tokens of each document with its EOS.
        longest: whether these are the longest rows, of which a document may have several; of others it has at most one.
        dropped: text tokens that no row of any length holds.
        eos_omitted: stored EOS that no row of any length holds.
        arrays: allocates the arrays of the plan.

    >>> plan = PowerPlan(2, np.array([7, 4, 2]), longest=False)
    >>> segments = plan.segments(np.arange(plan.rows))
    >>> segments.document, segments.start
    (array([0, 2]), array([4, 0]))
    """

    def __init__(
        self,
        sequence_length: int,
        lengths: Ints,
        *,
        longest: bool,
        dropped: int = 0,
        eos_omitted: int = 0,
        arrays: Arrays = IN_MEMORY,
    ) -> None:
        def has_rows(a: int, b: int) -> npt.NDArray[Any]:
            if longest:
                return lengths[a:b] >= sequence_length
            return lengths[a:b] & sequence_length

        here = arrays.where(len(lengths), has_rows, index_type(len(lengths)))
        before, units = None, len(here)
        if longest:
            before = arrays.totals(len(here), lambda a, b: lengths[here[a:b]] // sequence_length)
            units = int(before[-1])
        super().__init__(
            sequence_length=sequence_length, unit=sequence_length, units=units, dropped=dropped, eos_omitted=eos_omitted
        )
        self._lengths = lengths
        self._documents = here
        self._before: I64 | None = before

    def segments(self, units: Ints) -> Segments:
        units = np.asarray(units, np.int64)
        length = self.sequence_length
        if self._before is None:
            document = self._documents[units].astype(np.int64)
            # The document's longer rows come before.
            start = self._lengths[document].astype(np.int64) // (2 * length) * (2 * length)
        else:
            at = np.searchsorted(self._before, units, side="right") - 1
            document = self._documents[at].astype(np.int64)
            start = (units - self._before[at]) * length
        lengths = np.full(len(units), length)
        return Segments(document, start, lengths, np.zeros_like(document), np.arange(len(units) + 1))


def check(options: PackOptions) -> None:
    """Refuse a smallest bucket and a sequence length without a power of two between them.

    Raises:
        UsageError: naming the smallest bucket.
    """
    bottom, top = _shortest_and_longest(options)
    if bottom > top:
        what = f"no power of two lies between {options.min_bucket} and the sequence length {options.row_length}"
        raise UsageError("bad-option", what, remedy=f"give at most {top}", where="--min-bucket")


def _shortest_and_longest(options: PackOptions) -> tuple[int, int]:
    """Return the lengths of the shortest and the longest rows."""
    top = 1 << (options.row_length.bit_length() - 1)
    bottom = 1 << (max(options.min_bucket, options.multiple) - 1).bit_length()
    return bottom, top


def plan(lengths: Ints, options: PackOptions, arrays: Arrays = IN_MEMORY) -> list[Plan]:
    """Make a plan for each power of two from the smallest bucket to L; shorter pieces are dropped and counted.

    >>> plans = plan(np.array([23]), PackOptions(sequence_length=8, min_bucket=2))
    >>> [(bucket.sequence_length, bucket.rows) for bucket in plans], plans[0].eos_omitted
    ([(2, 1), (4, 1), (8, 2)], 1)
    """
    bottom, top = _shortest_and_longest(options)
    no_eos = dropped = 0
    for first, last in blocks(len(lengths)):
        rest = lengths[first:last] & (bottom - 1)
        no_eos += int(np.count_nonzero(rest))
        dropped += int(rest.sum(dtype=np.int64))
    dropped -= no_eos
    plans: list[Plan] = []
    length = bottom
    while length <= top:
        # What no row holds is in the account of the shortest rows, and only there.
        plans.append(
            PowerPlan(length, lengths, longest=length == top, dropped=dropped, eos_omitted=no_eos, arrays=arrays)
        )
        dropped = no_eos = 0
        length *= 2
    return plans


STRATEGY = Strategy(
    name="decompose",
    summary="each document cut into powers of two, one bucket for each",
    recommended=8,
    multi_bucket=True,
    windowed=False,
    plan=plan,
    check=check,
    powers=True,
)
