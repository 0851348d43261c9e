"""Leave out documents by their length in words, characters or tokens, and count what was left out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt


class DocumentCounts(msgspec.Struct):
    """Documents, the words (what whitespace separates), characters (code points) and tokens (EOS included) in them.

    Attributes:
        empty: those of the documents that have no token.
    """

    documents: int = 0
    words: int = 0
    characters: int = 0
    tokens: int = 0
    empty: int = 0

    def add(self, documents: Sequence[Any], tokens: npt.NDArray[np.int64]) -> None:
        """Count documents, and the tokens of each; of ids only these."""
        self.documents += len(documents)
        self.tokens += int(tokens.sum())
        self.empty += int((tokens == 0).sum())
        for document in documents:
            if not isinstance(document, list):
                words, characters = size(document)
                self.words += words
                self.characters += characters


class Filters(msgspec.Struct, frozen=True):
    """Which documents to keep. None asks for nothing.

    >>> Filters(min_words=2).keeps("two words"), Filters(min_words=3).keeps("two words")
    (True, False)
    """

    min_words: int | None = None
    min_chars: int | None = None
    max_chars: int | None = None
    min_tokens: int | None = None
    max_tokens: int | None = None

    def fit(self, tokens: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Mark the documents whose number of tokens passes; empty ones are left to be counted as empty.

        >>> Filters(max_tokens=3).fit(np.array([0, 3, 4])).tolist()
        [True, True, False]
        """
        least = 0 if self.min_tokens is None else self.min_tokens
        most = np.iinfo(np.int64).max if self.max_tokens is None else self.max_tokens
        fits: npt.NDArray[np.bool_] = (tokens == 0) | ((tokens >= least) & (tokens <= most))
        return fits

    def keeps(self, text: str) -> bool:
        """Return whether a document passes every filter."""
        if self.min_chars is not None and len(text) < self.min_chars:
            return False
        if self.max_chars is not None and len(text) > self.max_chars:
            return False
        # Splitting stops at the word that decides.
        return not self.min_words or len(text.split(None, self.min_words - 1)) >= self.min_words

    def kept(self, texts: Sequence[str]) -> list[int] | None:
        """Return the places of the documents that words and characters leave; None if these do not decide."""
        if self.min_words is None and self.min_chars is None and self.max_chars is None:
            return None
        return [place for place, text in enumerate(texts) if self.keeps(text)]


def size(text: str) -> tuple[int, int]:
    """Count words and characters of a document.

    >>> size("one  two")
    (2, 8)
    """
    return len(text.split()), len(text)
