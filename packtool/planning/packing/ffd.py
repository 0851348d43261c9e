"""First-fit decreasing: documents cut to chunks of at most a row, each chunk put into the first bin with room for it.

Few rows, little padding, no document cut that fits a row.
Paper: Seamless Packing, D.3.
"""

from __future__ import annotations

from packtool.planning.packing.bins.filled import fill
from packtool.planning.packing.bins.greedy import first_fit
from packtool.planning.packing.strategy import PackOptions, Strategy
from packtool.planning.plan import Ints, Plan


def plan(lengths: Ints, options: PackOptions) -> list[Plan]:
    """Put chunks into first-fit-decreasing bins of L tokens; a chunk of EOS alone is left out.

    >>> import numpy as np
    >>> bins, = plan(np.array([5, 3, 6, 2]), PackOptions(sequence_length=8))
    >>> bins.segments(np.arange(bins.rows)).document
    array([2, 3, 0, 1])
    """
    return [fill(lengths, options, first_fit).plan()]


STRATEGY = Strategy(
    name="ffd",
    summary="whole documents in bins, first fit decreasing",
    recommended=3,
    windowed=True,
    plan=plan,
    mixes=True,
    whole=True,
    omits_eos=True,
)
