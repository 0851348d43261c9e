"""Leave out documents by their length in words, characters or tokens, and count what was left out.

A filter is an entry in one of the two tables below, with the name of its option.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from packtool.planning.plan import Mask

OF_TEXTS: dict[str, Callable[[str, int], bool]] = {
    # Splitting stops at the word that decides.
    "min_words": lambda text, least: not least or len(text.split(None, least - 1)) >= least,
    "min_chars": lambda text, least: len(text) >= least,
    "max_chars": lambda text, most: len(text) <= most,
}
"""Tests of whether to keep a text, given the limit, before anything is encoded."""
OF_TOKENS: dict[str, Callable[[npt.NDArray[np.int64], int], Mask]] = {
    "min_tokens": lambda tokens, least: tokens >= least,
    "max_tokens": lambda tokens, most: tokens <= most,
}
"""The same, given the number of tokens of each document, EOS included."""


class DocumentCounts(msgspec.Struct):
    """Documents, the words (what whitespace separates) and characters (code points) in them, and their tokens."""

    documents: int = 0
    words: int = 0
    characters: int = 0
    tokens: int = 0  # tokens of the encoded documents, EOS included
    unencoded: int = 0  # documents that were not encoded

    def add(self, documents: Sequence[Any], tokens: npt.NDArray[np.int64] | None) -> None:
        """Count documents, and the tokens of each one; None for documents that were not encoded."""
        self.documents += len(documents)
        self.tokens += 0 if tokens is None else int(tokens.sum())
        self.unencoded += len(documents) if tokens is None else 0
        for document in documents:
            if isinstance(document, str):
                words, characters = size(document)
                self.words += words
                self.characters += characters


class Filters(msgspec.Struct, frozen=True):
    """The filters of a run.

    >>> Filters({"min_words": 2}).of_texts(["two words", "one"])
    array([ True, False])
    >>> Filters({"max_tokens": 3}).of_tokens(np.array([0, 3, 4]))
    array([ True,  True, False])
    """

    limits: dict[str, int] = {}  # limits of the filters that are asked, by name

    @property
    def need_tokens(self) -> bool:
        """Whether any filter needs the number of tokens."""
        return not OF_TOKENS.keys().isdisjoint(self.limits)

    def of_texts(self, texts: Sequence[str]) -> Mask:
        """Mark the texts that pass."""
        asked = [(OF_TEXTS[name], limit) for name, limit in self.limits.items() if name in OF_TEXTS]
        if not asked:
            return np.ones(len(texts), np.bool_)
        return np.array([all(keeps(text, limit) for keeps, limit in asked) for text in texts], np.bool_)

    def of_tokens(self, tokens: npt.NDArray[np.int64]) -> Mask:
        """Mark the documents whose number of tokens passes; empty ones are left to be counted as empty."""
        fits: Mask = np.ones(len(tokens), np.bool_)
        for name, limit in self.limits.items():
            if name in OF_TOKENS:
                fits &= OF_TOKENS[name](tokens, limit) | (tokens == 0)
        return fits


def size(text: str) -> tuple[int, int]:
    """Count words and characters of a document.

    >>> size("one  two")
    (2, 8)
    """
    return len(text.split()), len(text)
