"""Map characters that train to the tokens that do."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Spans = tuple[tuple[int, int], ...]
"""(begin, end) in characters, ascending, none overlapping."""
Places = npt.NDArray[np.integer[Any]]


def token_mask(begins: Places, ends: Places, spans: npt.ArrayLike) -> npt.NDArray[np.uint8]:
    """Mark with 1 each token that has a character in a span, as Transformers masks them.

    Args:
        begins, ends: of each token, in characters (or bytes, as the spans); each ascending.
        spans: (spans, 2), begin and end of each, ascending, none overlapping.

    >>> token_mask(np.array([0, 2, 4, 5]), np.array([2, 4, 5, 8]), ((3, 5),))
    array([0, 1, 1, 0], dtype=uint8)
    """
    bounds = np.asarray(spans, np.int64).reshape(-1, 2)
    bounds = bounds[bounds[:, 0] < bounds[:, 1]]
    first = np.searchsorted(ends, bounds[:, 0], side="right")
    last = np.searchsorted(begins, bounds[:, 1], side="left")
    # Tokens over two spans are the last of one and the first of the next.
    depth = np.zeros(len(begins) + 1, np.int32)
    np.add.at(depth, first, 1)
    np.subtract.at(depth, last, 1)
    return ((np.cumsum(depth[:-1], out=depth[:-1]) > 0) & (ends > begins)).view(np.uint8)
