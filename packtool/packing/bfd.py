"""Best-fit decreasing: documents cut to chunks of at most a row, each put where it leaves the least room.

Few rows, little padding, no document cut that fits a row.
Paper: Seamless Packing, D.3.
"""

from __future__ import annotations

from packtool.packing.bins import pack_tails
from packtool.packing.chunks import cut
from packtool.packing.histogram import best_fit
from packtool.packing.optimize import plan_optimized
from packtool.packing.options import PackOptions, Strategy
from packtool.plan import Ints, Plan


def plan(lengths: Ints, options: PackOptions) -> list[Plan]:
    """Chunks in best-fit-decreasing bins of L tokens; a chunk of EOS alone is left out.

    >>> import numpy as np
    >>> bins, = plan(np.array([5, 6, 3, 2]), PackOptions(sequence_length=8))
    >>> bins.segments(np.arange(bins.rows)).document
    array([1, 3, 0, 2])
    """
    size = options.length
    if options.optimize:
        return [plan_optimized(lengths, size, best_fit)]
    return [pack_tails(lengths, size, cut(lengths, size), lambda counts: best_fit(counts, size))]


STRATEGY = Strategy(
    name="bfd",
    summary="whole documents in bins, best fit decreasing",
    paper="Seamless Packing, D.3",
    accepts=frozenset({"sequence_length", "optimize"}),
    multi_bucket=False,
    windowed=True,
    plan=plan,
)
