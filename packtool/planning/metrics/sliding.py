"""Count texts that can slide: the theory of Seamless Packing (section 3.4, equations 4 to 7) and exact counts."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from packtool.planning.metrics.lengths import LengthCounts
from packtool.planning.plan import I64


@dataclass(frozen=True, slots=True)
class Sliding:
    """The effect of the first stage on texts longer than a row, at one maximum repetition ratio.

    Attributes:
        max_repetition: r_max.
        predicted_texts: texts that slide, by equation 6.
        predicted_tokens: tokens of the other texts that are left for the short list, by equation 7.
        texts: texts that do slide.
        tokens: tokens that are left.
    """

    max_repetition: float
    predicted_texts: float
    predicted_tokens: float
    texts: int
    tokens: int


def sliding(counts: LengthCounts, sequence_length: int, max_repetition: Fraction) -> Sliding:
    """Measure the predicted and actual effect of sliding windows.

    The theory takes lengths as uniform between k L and (k + 1) L: there, a share k r_max of the T_k texts slides (all
    from k = 1 / r_max), and a text that does not slide leaves (1 - k r_max) L / 2 tokens on average. In the paper both
    sums of equation 6 include k = ceil(1 / r_max); each text is counted once here, as in the paper's own figures.

    >>> counts = LengthCounts(np.array([12, 18, 25]), np.array([10, 10, 10]))
    >>> sliding(counts, 10, Fraction(1, 2))
    Sliding(max_repetition=0.5, predicted_texts=20.0, predicted_tokens=25.0, texts=20, tokens=20)
    """
    long = counts.values > sequence_length
    length, documents = counts.values[long], counts.counts[long]
    interval = ((length - 1) // sequence_length).astype(object)  # (k L, (k + 1) L]
    top, bottom = max_repetition.numerator, max_repetition.denominator
    # In whole numbers of any size, so that the figures are the same everywhere and for every ratio.
    stays = np.maximum(0, bottom - interval * top)
    slide = slides(length, sequence_length, max_repetition)
    return Sliding(
        max_repetition=float(max_repetition),
        predicted_texts=int((bottom - stays) @ documents) / bottom,
        predicted_tokens=int((stays * stays) @ documents) * sequence_length / (2 * bottom * bottom),
        texts=int(documents[slide].sum()),
        tokens=int((documents * (length % sequence_length))[~slide].sum()),
    )


def slides(lengths: I64, sequence_length: int, max_repetition: Fraction) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return whether documents of these lengths, at least L, fill one more row by overlapping.

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
