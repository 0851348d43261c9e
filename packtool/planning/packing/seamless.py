"""Seamless packing: long documents slide over one row more than they fill; the rest in bins a little larger than a row.

Rows of a document that overlap share context; few tokens are repeated, few dropped, no padding but in the last row.
Paper: Seamless Packing, 3.2 and 3.3.
"""

from __future__ import annotations

import numpy as np

from packtool.planning.metrics.sliding import slides
from packtool.planning.packing.bins.filled import FilledBins, cut_documents
from packtool.planning.packing.bins.greedy import first_fit
from packtool.planning.packing.strategy import PackOptions, Strategy
from packtool.planning.plan import I64, Ints, Plan


def plan(lengths: Ints, options: PackOptions) -> list[Plan]:
    """Make sliding or plain rows of long documents, then first-fit-decreasing bins of L + c_extra tokens.

    >>> from fractions import Fraction
    >>> rows, = plan(np.array([18]), PackOptions(sequence_length=10, max_repetition=Fraction("0.2")))
    >>> segments = rows.segments(np.arange(rows.rows))
    >>> segments.start, segments.repeated
    (array([0, 8]), array([0, 2]))
    """
    return [_fill(lengths, options).plan()]


def _fill(lengths: Ints, options: PackOptions) -> FilledBins:
    sequence_length = options.row_length

    def rows_and_tails(long: I64, sequence_length: int) -> tuple[I64, I64]:
        rows, tails = np.divmod(long, sequence_length)
        slide = slides(long, sequence_length, options.repetition)
        return rows + slide, np.where(slide, 0, tails)

    documents = cut_documents(lengths, sequence_length, rows_and_tails)
    runs = first_fit(documents.counts, sequence_length + options.extra)
    return FilledBins(lengths, sequence_length, documents, runs, remainder=options.remainder)


STRATEGY = Strategy(
    name="seamless",
    summary="overlapping rows of long documents, the rest in bins with the excess dropped",
    recommended=6,
    windowed=True,
    plan=plan,
    omits_eos=True,
)
