"""Tokenizers that make every numeric character a pre-token of its own, for an encoder that does not know how to.

An added token splits a text where it stands, as the pre-tokenizer does before a digit and after it. So every numeric
character becomes an added token: those of ASCII with the id they have, since they are entries of their own; the others,
which may take several ids, with a placeholder above all ids, which is replaced afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from packtool.tokenizing.encoders import U32
from packtool.tokenizing.unicode import table

FLAGS = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}


class Digits:
    """The added tokens, and what their placeholders stand for.

    Args:
        vocab: of the model.
        first: the first placeholder; above all ids.
        spell: the ids of one character alone.
        taken: texts of the tokenizer's own added tokens, which keep their ids.
    """

    def __init__(
        self, vocab: Mapping[str, int], first: int, spell: Callable[[str], U32], taken: frozenset[str]
    ) -> None:
        numeric = [chr(code) for code in np.flatnonzero(table("numeric"))]
        kept = {each: vocab[each] for each in numeric if each.isascii() and each in vocab and each not in taken}
        self._first = first
        self._characters = [each for each in numeric if each not in kept and each not in taken]
        self._spell = spell
        self._spelled: dict[int, U32] = {}
        placed = {each: first + number for number, each in enumerate(self._characters)}
        self.tokens: list[dict[str, Any]] = [
            {"id": number, "content": each, **FLAGS} for each, number in {**kept, **placed}.items()
        ]

    def expand(self, ids: U32) -> U32:
        """Replace every placeholder among ids by what it stands for."""
        places = np.flatnonzero(ids >= self._first)
        if not len(places):
            return ids
        parts, at = [], 0
        for place in places.tolist():
            parts += [ids[at:place], self._ids(int(ids[place]))]
            at = place + 1
        return np.concatenate([*parts, ids[at:]])

    def _ids(self, placeholder: int) -> U32:
        if placeholder not in self._spelled:
            self._spelled[placeholder] = self._spell(self._characters[placeholder - self._first])
        return self._spelled[placeholder]
