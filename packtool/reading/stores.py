"""Find the token stores that the tokens of rows are from."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from packtool.planning.plan import INSERTED_EOS, PADDING, Segments, offsets_of


def stores_of(segments: Segments, documents: Sequence[int], shape: tuple[int, ...]) -> npt.NDArray[np.int32]:
    """Return the numbers of the stores that tokens are from, -1 for padding; an inserted EOS belongs to its document.

    Args:
        segments: of the rows.
        documents: number of documents in each store; they are numbered through all stores.
        shape: (rows, tokens in a row).

    >>> one = np.array
    >>> two = Segments(one([1, 4, -2, -1]), one([0, 0, 0, 0]), one([2, 1, 1, 2]), one([0, 0, 0, 0]), one([0, 4]))
    >>> stores_of(two, [3, 5], (1, 6)).tolist()
    [[0, 0, 1, 1, -1, -1]]
    """
    store = np.searchsorted(offsets_of(np.array(documents, np.int64)), segments.document, side="right") - 1
    store[segments.document == PADDING] = -1
    # The last segment before it that is no inserted EOS.
    named = np.where(segments.document == INSERTED_EOS, 0, np.arange(len(store)))
    return np.repeat(store[np.maximum.accumulate(named)].astype(np.int32), segments.length).reshape(shape)
