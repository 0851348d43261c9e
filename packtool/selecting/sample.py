"""Sample documents and keep the distribution of lengths: the same share of each length interval."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt

from packtool.plan import I64, Ints, offsets_of
from packtool.shuffling.permutation import SAMPLE, keys


def sampled(lengths: Ints, kept: I64, share: Fraction, interval: int, seed: int) -> npt.NDArray[np.bool_]:
    """Draw a stratified sample (Seamless Packing, appendix D.1); larger shares hold the documents of smaller ones.

    Of each interval (k · interval, (k + 1) · interval] those with the smallest keys, as many as come nearest to its
    share; halves are rounded up.

    Args:
        lengths: of all documents of the store, in tokens.
        kept: the documents to choose from, ascending.
        share: of the documents of each interval.
        interval: in tokens.
        seed: of the keys.

    >>> mask = sampled(np.array([3, 4, 4, 2, 9, 9]), np.arange(6), Fraction(1, 2), interval=4, seed=0)
    >>> int(mask[:4].sum()), int(mask[4:].sum())
    (2, 1)
    """
    taken = np.zeros(len(lengths), np.bool_)
    if not len(kept):
        return taken
    stratum = (np.asarray(lengths)[kept].astype(np.int64) - 1) // interval
    order = np.lexsort((keys(seed, SAMPLE, 0, 0, len(lengths))[kept], stratum))
    _, sizes = np.unique(stratum, return_counts=True)
    wanted = np.array([int(share * size + Fraction(1, 2)) for size in sizes.tolist()], np.int64)
    rank = np.arange(len(kept)) - np.repeat(offsets_of(sizes)[:-1], sizes)
    taken[kept[order[rank < np.repeat(wanted, sizes)]]] = True
    return taken
