"""The documents of a batch, rearranged to fill in the middle: encoded piece by piece, and counted."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np
import numpy.typing as npt

from packtool.text.encoding.encode import EncodedDocuments, encoded
from packtool.text.encoding.verify import Verified
from packtool.text.tokenizing.counts import SpanCounts
from packtool.text.tokenizing.fim import FillInTheMiddle, TextPiece, rearranged


class Rearranged:
    """The documents of a batch, as the pieces that they were rearranged into.

    Args:
        documents: texts.
        utf8: UTF-8 of the texts.
        fim: how to rearrange them.
    """

    def __init__(self, documents: Sequence[str], utf8: Sequence[bytes], fim: FillInTheMiddle) -> None:
        self._utf8 = utf8
        self._fim = fim
        self._pieces: list[list[TextPiece]] = []
        forms = []
        for text in documents:
            pieces, prefix_first, suffix_first = rearranged(text, fim)
            self._pieces.append(pieces)
            forms.append((prefix_first, suffix_first))
        self._forms = np.array(forms, np.int64).reshape(-1, 2)  # of no documents, too

    def encoded(self, encoder: Verified, counts: SpanCounts) -> EncodedDocuments:
        """Encode every piece alone, and put its sentinels before it; count both.

        Returns:
            The documents, joined from their pieces.
        """
        pieces = list(chain.from_iterable(self._pieces))
        if not pieces:
            return encoded([], [], encoder)
        texts: list[str] = []
        utf8: list[bytes] = []
        for own, data in zip(self._pieces, self._utf8, strict=True):
            for piece in own:
                text = piece.text
                if not piece.begins:
                    text = self._fim.guard + text
                texts.append(text)
                utf8.append(data if len(own) == 1 else text.encode())  # what is whole is not encoded twice
        # Each piece is encoded as a document of its own.
        parts = encoded(texts, utf8, encoder)
        if self._fim.guard:
            guarded = np.array([not piece.begins for piece in pieces], np.bool_)
            parts = _without_first(parts, guarded, len(encoder.reference.spell(self._fim.guard)))
        counts.encoded += len(parts.ids)
        counts.sentinels += len(self._fim.ids) * int(self._forms.sum())
        before = np.array([len(piece.sentinels) for piece in pieces], np.int64)
        sentinels = np.fromiter(chain.from_iterable(piece.sentinels for piece in pieces), np.uint32)
        # The ids of a piece begin where those of the pieces before it end, and its sentinels go there. At equal places
        # np.insert keeps the order: so the sentinels of a piece without ids stay before those of the next one.
        begins = np.cumsum(parts.lengths) - parts.lengths
        ids = np.insert(parts.ids, np.repeat(begins, before), sentinels)
        # A document has one piece at least, so `reduceat` never meets an empty range.
        first = np.cumsum([0, *map(len, self._pieces)])[:-1]
        lengths = np.add.reduceat(parts.lengths + before, first)
        return EncodedDocuments(ids, lengths)

    def count(self, counts: SpanCounts, stored: npt.NDArray[np.bool_], special_ids: Sequence[int]) -> None:
        """Count the rearranged documents among those that go to the store.

        Args:
            special_ids: special tokens whose occurrences in texts are counted: sentinels written here are taken off.
        """
        prefix_first, suffix_first = self._forms[stored].sum(axis=0).tolist()
        parts = prefix_first + suffix_first
        found = {
            "fim_documents": int(np.count_nonzero(self._forms[stored].sum(axis=1))),
            "fim_prefix_first": prefix_first,
            "fim_suffix_first": suffix_first,
            "fim_sentinels": len(self._fim.ids) * parts,
        }
        counts.fim = {name: counts.fim.get(name, 0) + number for name, number in found.items()}
        for number in set(self._fim.ids) & set(special_ids):
            counts.special[str(number)] = counts.special.get(str(number), 0) - parts


def _without_first(parts: EncodedDocuments, guarded: npt.NDArray[np.bool_], size: int) -> EncodedDocuments:
    """Remove the first ids of the guarded pieces: they belong to the guard, and to the mark before it."""
    starts = (np.cumsum(parts.lengths) - parts.lengths)[guarded]
    ids = np.delete(parts.ids, (starts[:, None] + np.arange(size)).ravel())
    return parts._replace(ids=ids, lengths=parts.lengths - size * guarded)
