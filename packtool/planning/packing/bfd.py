"""Best-fit decreasing: documents cut to chunks of at most a row, each put where it leaves the least room.

Few rows, little padding, no document cut that fits a row.
Paper: Seamless Packing, D.3.
"""

from __future__ import annotations

from packtool.planning.packing.bins.filled import fill
from packtool.planning.packing.bins.greedy import best_fit
from packtool.planning.packing.strategy import PackOptions, Strategy
from packtool.planning.plan import Ints, Plan


def plan(lengths: Ints, options: PackOptions) -> list[Plan]:
    """Put chunks into best-fit-decreasing bins of L tokens; a chunk of EOS alone is left out.

    >>> import numpy as np
    >>> bins, = plan(np.array([5, 6, 3, 2]), PackOptions(sequence_length=8))
    >>> bins.segments(np.arange(bins.rows)).document
    array([1, 3, 0, 2])
    """
    return [fill(lengths, options, best_fit).plan()]


STRATEGY = Strategy(
    name="bfd",
    summary="whole documents in bins, best fit decreasing",
    recommended=2,
    windowed=True,
    plan=plan,
    mixes=True,
    whole=True,
    omits_eos=True,
)
