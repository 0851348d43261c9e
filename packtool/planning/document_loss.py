"""Which tokens of documents train, for plans that depend on it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from packtool.planning.plan import I64, Ints, Mask, Segments, offsets_of


@dataclass(frozen=True)
class DocumentLoss:
    """Which tokens of documents train, where their stores say so."""

    read: Callable[[Segments], npt.NDArray[np.uint8]]  # 1 for each token that trains, 0 for others
    store_documents: Sequence[int]  # documents of each store
    conversations: Sequence[bool]  # whether the documents of each store are conversations with a loss
    numbers: Ints | None = None  # which of these documents each planned document is; None if they are the same

    def says(self, document: I64) -> Mask:
        """Return whether each planned document is a conversation with a loss."""
        store = np.searchsorted(np.cumsum(self.store_documents), self._numbered(document), side="right")
        return np.asarray(self.conversations, np.bool_)[store]

    def in_pieces(self, document: I64, start: I64, length: I64) -> Mask:
        """Return whether any token of each piece of a planned document trains; a piece has at least one token."""
        if not len(document):
            return np.zeros(0, np.bool_)
        one_group = np.array([0, len(document)])
        trains = self.read(Segments(self._numbered(document), start, length, np.zeros_like(start), one_group))
        return np.logical_or.reduceat(trains, offsets_of(length)[:-1])

    def _numbered(self, document: I64) -> I64:
        if self.numbers is None:
            return document
        return self.numbers[document].astype(np.int64)
