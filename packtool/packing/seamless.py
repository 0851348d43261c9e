"""Seamless packing: long documents slide over one row more than they fill; the rest in bins a little larger than a row.

Rows of a document that overlap share context; few tokens are repeated, few dropped, no padding but in the last row.
Paper: Seamless Packing, 3.2 and 3.3.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from packtool.packing.bins.cut import cut_documents
from packtool.packing.bins.filled import FilledBins
from packtool.packing.bins.greedy import first_fit
from packtool.packing.options import PackOptions, Strategy
from packtool.plan import I64, Ints, Plan


def plan(lengths: Ints, options: PackOptions) -> list[Plan]:
    """Make sliding or plain rows of long documents, then first-fit-decreasing bins of L + c_extra tokens.

    >>> import numpy as np
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


def slides(lengths: I64, sequence_length: int, max_repetition: Fraction) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Find which documents of these lengths, at least L each, fill one row more by overlapping.

    With n = len // L: they do where len is no multiple of L and len + ceil(n * r_max * L) >= (n + 1) * L
    (formulas 1 and 2), in exact arithmetic.

    >>> slides(np.array([36, 37, 40]), 10, Fraction("0.1"))
    array([False,  True, False])
    """
    rows, tails = np.divmod(lengths, sequence_length)
    missing = sequence_length - tails
    share, whole = max_repetition.as_integer_ratio()
    largest = (int(rows.max(initial=0)) * share + whole) * sequence_length
    if largest >= 1 << 63:
        rows, missing = rows.astype(object), missing.astype(object)
    # ceil(x) >= missing where x > missing - 1.
    enough = (rows * (share * sequence_length) > (missing - 1) * whole).astype(np.bool_)
    return np.logical_and(tails > 0, enough)


STRATEGY = Strategy(
    name="seamless",
    summary="overlapping rows of long documents, the rest in bins with the excess dropped",
    paper="Seamless Packing, 3.2 and 3.3",
    windowed=True,
    plan=plan,
    count=lambda lengths, options: [_fill(lengths, options).count()],
)
