"""From characters that train to tokens that do."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Spans = tuple[tuple[int, int], ...]
"""(begin, end) in characters, ascending, none overlapping."""


def token_mask(offsets: npt.NDArray[np.int64], spans: Spans) -> npt.NDArray[np.uint8]:
    """1 for each token that has a character in a span, as Transformers masks them.

    Args:
        offsets: (tokens, 2), the characters of each: begin and end.
        spans: in characters.

    >>> token_mask(np.array([[0, 2], [2, 4], [4, 5], [5, 8]]), ((3, 5),))
    array([0, 1, 1, 0], dtype=uint8)
    """
    bounds = np.array(spans, np.int64).reshape(-1, 2)
    begin, end = offsets[:, 0], offsets[:, 1]
    # Of the spans that end after a token begins, the first is the one it may lie in.
    near = np.searchsorted(bounds[:, 1], begin, side="right")
    reached = np.append(bounds[:, 0], np.iinfo(np.int64).max)[near]
    return ((end > reached) & (end > begin)).astype(np.uint8)
