"""What a tokenizer has no token for: characters that vanish, and characters that become its unknown token."""

from __future__ import annotations

import re
import string
from collections.abc import Mapping
from typing import Any

import msgspec

from packtool.text.encoding.families import bytes_of_characters, kinds
from packtool.warnings import warn

_BYTE = re.compile(r"<0x[0-9A-F]{2}>")
_SHOWN = 8  # examples in a warning
_COMMON = [*string.ascii_letters, *string.digits, *string.punctuation, *"éüñßдя中日ا한😀"]
"""Characters to try, for examples."""


_UTF8 = frozenset(range(256)) - {0xC0, 0xC1, *range(0xF5, 0x100)}  # bytes of UTF-8 text


class Alphabet(msgspec.Struct, frozen=True):
    """The characters that a tokenizer has tokens for."""

    unknown: int | None = None  # id of the token of the unknown; None if the tokenizer has no such token
    bytes: frozenset[int] | None = None  # bytes that have a token, if a byte-level tokenizer lacks some; else None
    characters: frozenset[str] | None = None  # characters that have a token, if others are dropped; else None

    @property
    def whole(self) -> bool:
        """Return whether no character vanishes."""
        return self.bytes is None and self.characters is None

    def lacks(self, character: str) -> bool:
        """Return whether a character, normalized, vanishes."""
        if self.bytes is not None:
            return not self.bytes.issuperset(character.encode())
        return self.characters is not None and character not in self.characters and not character.isspace()

    def count_lost(self, text: str) -> int:
        """Count the characters of a text, normalized, that vanish.

        >>> Alphabet(bytes=frozenset(b"abc ")).count_lost("abc äx")
        2
        """
        return sum(text.count(character) for character in set(text) if self.lacks(character))


def alphabet_of(spec: Mapping[str, Any], vocab: Mapping[str, int]) -> Alphabet:
    """Return the alphabet of a tokenizer.

    A BPE without a token of the unknown drops characters that it has no token for; other models always have one.

    >>> model = {"type": "BPE", "vocab": {"None": 7}, "unk_token": None}
    >>> alphabet_of({"model": model, "pre_tokenizer": {"type": "ByteLevel"}}, {"None": 7}).unknown is None
    True
    """
    model = spec["model"]
    unknown = model.get("unk_id") if model.get("type") == "Unigram" else None
    if isinstance(model.get("unk_token"), str):
        unknown = vocab.get(model["unk_token"])
    fallback = model.get("byte_fallback") and sum(map(bool, map(_BYTE.fullmatch, vocab))) == 256
    if unknown is not None or fallback or model.get("type", "BPE") != "BPE":
        return Alphabet(unknown)
    if "ByteLevel" in (*kinds(spec.get("pre_tokenizer")), *kinds(spec.get("normalizer"))):
        known = frozenset(byte for character, byte in bytes_of_characters().items() if character in vocab)
        return Alphabet(bytes=None if known >= _UTF8 else known)
    return Alphabet(characters=frozenset(token for token in model["vocab"] if len(token) == 1))


def warn_of_gaps(alphabet: Alphabet, where: str) -> None:
    """Warn of a tokenizer that drops characters."""
    lost = list(filter(alphabet.lacks, _COMMON))
    if alphabet.bytes is not None:
        what = f"the tokenizer has no token for {256 - len(alphabet.bytes)} of the 256 bytes"
        remedy = "train it with initial_alphabet=pre_tokenizers.ByteLevel.alphabet()"
    elif alphabet.characters is not None:
        what = f"the tokenizer has tokens for {len(alphabet.characters):,} characters, and none for the unknown"
        remedy = "train it with an unk_token, or with byte_fallback"
    else:
        return
    if lost:
        examples = ", ".join(lost[:_SHOWN])
        warn("no-token", f"{what}: {examples}{', …' * (len(lost) > _SHOWN)} vanish", remedy=remedy, where=where)
