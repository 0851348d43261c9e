"""Count what a plan's rows hold, as far as possible without computing which document lies where."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from packtool.metrics.lengths import LengthCounts
from packtool.metrics.tally import Tally
from packtool.options.pack import PackOptions
from packtool.plan import Ints, Plan, pad

_ROWS = 1 << 12  # rows that are counted at a time


@dataclass
class Counted:
    """The counts of the rows of one length, and of what the strategy left out.

    Attributes:
        tally: the counts of its rows.
        dropped: text tokens that no row holds.
        eos_omitted: stored EOS that no row holds.
        eos_inserted: EOS that no document has.
    """

    tally: Tally
    dropped: int = 0
    eos_omitted: int = 0
    eos_inserted: int = 0

    @property
    def sequence_length(self) -> int:
        return self.tally.sequence_length

    @property
    def rows(self) -> int:
        return self.tally.rows

    def include(self, window: Counted) -> None:
        """Add the counts of one window, whose documents are among those of this tally; none may lie in several rows."""
        self.tally.include(window.tally.counts())
        self.dropped += window.dropped
        self.eos_omitted += window.eos_omitted
        self.eos_inserted += window.eos_inserted


def count_each_length(
    plan: Callable[[Ints, PackOptions], list[Plan]], lengths: Ints, options: PackOptions
) -> list[Counted]:
    """Count the rows of a strategy whose documents never share one.

    One document of each length is planned, and its rows count as often as the length occurs.

    >>> from packtool.packing.padding import plan
    >>> [counted] = count_each_length(plan, np.array([5, 9, 5]), PackOptions(sequence_length=8))
    >>> counted.rows, counted.tally.padding, counted.eos_omitted
    (4, 15, 3)
    """
    known = LengthCounts.of(lengths)
    parts = []
    stored = written = 0
    for each in plan(known.values, options):
        tally = Tally(lengths, each.sequence_length)
        for first in range(0, each.rows, _ROWS):
            rows = pad(each.segments(np.arange(first, min(first + _ROWS, each.rows))), each.unit)
            # A row begins with a segment of the one document that it holds.
            tally.add(rows, known.counts[rows.document[rows.offsets[:-1]]], known.values)
        stored, written = stored + tally.stored_eos, written + tally.placed
        parts.append(Counted(tally, eos_inserted=tally.eos_inserted))
    parts[0].eos_omitted = len(lengths) - stored
    parts[0].dropped = known.tokens - known.documents - written
    return parts
