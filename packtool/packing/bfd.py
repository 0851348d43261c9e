"""Best-fit decreasing: documents cut to chunks of at most a row, each put where it leaves the least room.

Few rows, little padding, no document cut that fits a row.
Paper: Seamless Packing, D.3.
"""

from __future__ import annotations

from packtool.packing.bins.cut import cut_documents
from packtool.packing.bins.filled import FilledBins
from packtool.packing.bins.greedy import best_fit
from packtool.packing.bins.optimize import near_optimal
from packtool.packing.options import PackOptions, Strategy
from packtool.packing.plans.counted import Counted
from packtool.plan import Ints, Plan


def plan(lengths: Ints, options: PackOptions) -> list[Plan]:
    """Put chunks into best-fit-decreasing bins of L tokens; a chunk of EOS alone is left out.

    >>> import numpy as np
    >>> bins, = plan(np.array([5, 6, 3, 2]), PackOptions(sequence_length=8))
    >>> bins.segments(np.arange(bins.rows)).document
    array([1, 3, 0, 2])
    """
    return [_fill(lengths, options).plan()]


def count(lengths: Ints, options: PackOptions) -> list[Counted]:
    """Count the rows of `plan`."""
    return [_fill(lengths, options).count()]


def _fill(lengths: Ints, options: PackOptions) -> FilledBins:
    sequence_length = options.row_length
    documents = cut_documents(lengths, sequence_length)
    if not options.optimize:
        return FilledBins(lengths, sequence_length, documents, best_fit(documents.counts, sequence_length))
    runs, bound = near_optimal(documents.counts, sequence_length, best_fit)
    return FilledBins(lengths, sequence_length, documents, runs, least_rows=documents.whole_rows + bound)


STRATEGY = Strategy(
    name="bfd",
    summary="whole documents in bins, best fit decreasing",
    paper="Seamless Packing, D.3",
    multi_bucket=False,
    windowed=True,
    plan=plan,
    count=count,
    mixes=True,
    whole=True,
)
