"""Counts of the rows of one length, and what the strategy says it left out."""

from __future__ import annotations

from dataclasses import dataclass

from packtool.metrics import Tally


@dataclass
class Counted:
    """What a plan would hold, without the plan.

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
