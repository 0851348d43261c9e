"""Leave out documents by their length in words or characters, and count what was left out."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from packtool.corpus.records import Document


class Counted(msgspec.Struct):
    """Documents, and the words (what whitespace separates) and characters (code points) in them."""

    documents: int = 0
    words: int = 0
    characters: int = 0


class Filters(msgspec.Struct, frozen=True):
    """Which documents to keep. None asks for nothing.

    >>> Filters(min_words=2).keeps("two words"), Filters(min_words=3).keeps("two words")
    (True, False)
    """

    min_words: int | None = None
    min_chars: int | None = None
    max_chars: int | None = None

    def keeps(self, text: Document) -> bool:
        """Whether a document passes every filter."""
        if isinstance(text, str):
            if self.min_chars is not None and len(text) < self.min_chars:
                return False
            if self.max_chars is not None and len(text) > self.max_chars:
                return False
            # Splitting stops at the word that decides.
            return not self.min_words or len(text.split(None, self.min_words - 1)) >= self.min_words
        words, characters = size(text)
        return (
            (self.min_words is None or words >= self.min_words)
            and (self.min_chars is None or characters >= self.min_chars)
            and (self.max_chars is None or characters <= self.max_chars)
        )

    def split(
        self, texts: list[Document], numbers: Sequence[int], dropped: Counted
    ) -> tuple[list[Document], Sequence[int]]:
        """The documents to keep, with their numbers; the others are added to `dropped`."""
        if self == Filters():
            return texts, numbers
        kept, kept_numbers = [], []
        for text, number in zip(texts, numbers, strict=True):
            if self.keeps(text):
                kept.append(text)
                kept_numbers.append(number)
            else:
                words, characters = size(text)
                dropped.documents += 1
                dropped.words += words
                dropped.characters += characters
        return kept, kept_numbers


def size(text: Document) -> tuple[int, int]:
    """Words and characters of a document.

    >>> size("one  two")
    (2, 8)
    """
    if isinstance(text, str):
        return len(text.split()), len(text)
    words = characters = 0
    inside = False  # the last piece ended inside a word
    for piece in text:
        if piece:
            words += len(piece.split()) - (inside and not piece[0].isspace())
            characters += len(piece)
            inside = not piece[-1].isspace()
    return words, characters
