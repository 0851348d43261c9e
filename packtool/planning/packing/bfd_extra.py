"""BFD-m: best-fit decreasing into bins a little larger than a row; what exceeds the row is dropped.

No padding but in the last row, at the price of a few dropped tokens; bins that stay below a row are joined and cut.
Paper: Seamless Packing, D.3.
"""

from __future__ import annotations

import numpy as np

from packtool.planning.packing.bins.filled import FilledBins, cut_documents
from packtool.planning.packing.bins.greedy import best_fit
from packtool.planning.packing.strategy import PackOptions, Strategy
from packtool.planning.plan import Ints, Plan


def plan(lengths: Ints, options: PackOptions) -> list[Plan]:
    """Put chunks into best-fit-decreasing bins of L + c_extra tokens, of which a row holds the first L.

    >>> import numpy as np
    >>> bins, = plan(np.array([5, 4, 8, 2]), PackOptions(sequence_length=8, extra_capacity=1))
    >>> bins.segments(np.arange(bins.rows)).document, bins.dropped, bins.eos_omitted
    (array([2, 0, 1, 3]), 0, 1)
    """
    return [_fill(lengths, options).plan()]


def _fill(lengths: Ints, options: PackOptions) -> FilledBins:
    sequence_length = options.row_length
    documents = cut_documents(lengths, sequence_length)
    counts = np.append(documents.counts, documents.whole_rows)
    runs = best_fit(counts, sequence_length + options.extra)
    # A whole row opens its own bin; tails that follow it in the bin are beyond the row.
    after_row = (runs.length == sequence_length)[runs.offsets[:-1]]
    return FilledBins(
        lengths,
        sequence_length,
        documents,
        runs.where(~after_row),
        after_rows=runs.where(after_row),
        remainder=options.remainder,
    )


STRATEGY = Strategy(
    name="bfd-extra",
    summary="best fit decreasing into bins larger than a row, the excess dropped",
    recommended=5,
    windowed=True,
    plan=plan,
    omits_eos=True,
)
