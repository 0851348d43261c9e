"""Best-fit decreasing: documents cut to chunks of at most a row, each put where it leaves the least room.

Few rows, little padding, no document cut that fits a row.
Paper: Seamless Packing, D.3.
"""

from __future__ import annotations

from packtool.packing.bins.cut import cut
from packtool.packing.bins.greedy import best_fit
from packtool.packing.bins.optimize import near_optimal
from packtool.packing.bins.tails import pack_tails
from packtool.packing.options import PackOptions, Strategy
from packtool.plan import Ints, Plan


def plan(lengths: Ints, options: PackOptions) -> list[Plan]:
    """Chunks in best-fit-decreasing bins of L tokens; a chunk of EOS alone is left out.

    >>> import numpy as np
    >>> bins, = plan(np.array([5, 6, 3, 2]), PackOptions(sequence_length=8))
    >>> bins.segments(np.arange(bins.rows)).document
    array([1, 3, 0, 2])
    """
    sequence_length = options.row_length
    documents = cut(lengths, sequence_length)
    if not options.optimize:
        return [pack_tails(lengths, sequence_length, documents, best_fit(documents.counts, sequence_length))]
    runs, bound = near_optimal(documents.counts, sequence_length, best_fit)
    return [pack_tails(lengths, sequence_length, documents, runs, least_rows=documents.whole_rows + bound)]


STRATEGY = Strategy(
    name="bfd",
    summary="whole documents in bins, best fit decreasing",
    paper="Seamless Packing, D.3",
    multi_bucket=False,
    windowed=True,
    plan=plan,
    mixes=True,
)
