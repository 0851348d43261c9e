"""Encode long texts piece by piece if that provably gives the same ids: `tokenizers` takes some 120 bytes of memory for
every byte of a text.

A text is cut between a letter (or a number such as ²) and a space or newline after it, where no id can reach over it:

- a byte-level BPE with a pattern that never goes on from either into whitespace, nor looks back, splits there anyway,
  and NFC never composes a letter with such whitespace;
- a BPE of SentencePiece splits nowhere, but joins two characters only if an entry of its vocabulary has one after the
  other, and it must have no entry with a letter before a space or newline. If it puts a mark before every text, the
  mark takes the place of the space at which the text was cut.

Added tokens must not reach over a cut either.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from packtool.text.encoding.families import NFC, SETTLED, marks_beginnings, shape, split_by, steps

PIECE = 1 << 15
"""Characters of a piece, about; also the length up to which a text is encoded whole. Two consecutive pieces are checked
against the reference as one text (see verify.py), so they must not be long."""
_SEARCH = 1 << 12

BEFORE, AT = "before", "at"
"""Ways to cut: before a space or newline, or at a space, which is left out."""
_FITS = {
    BEFORE: re.compile(r"[ \n](?<=[^\W\d_].)", re.DOTALL),
    AT: re.compile(r" (?<=[^\W\d_].)(?=[^\W\d_])", re.DOTALL),
}
"""The characters that follow the letter, or number such as ², after which a text may be cut."""
_LAST_FITS = {
    BEFORE: re.compile(f".*{_FITS[BEFORE].pattern}(?=.)", re.DOTALL),
    AT: re.compile(f".*{_FITS[AT].pattern}(?=.)", re.DOTALL),
}
"""Patterns for the last such character in a part of a text; the part's own last character does not count. One search
takes a fifth of the time of a loop over places, which took 2 % of the command's CPU time where half of the text was in
long documents."""
_REACHES = {False: re.compile(r"[^\W\d_]\s"), True: re.compile(r"[^\W\d_](?:\s|\Z)")}
"""Patterns that no added token may match: it would reach over a cut, or strip the whitespace after it."""
_TAKES_THE_SPACE = re.compile(r"\A(?: ?\w| \Z)|\w\Z")
"""A further pattern that no added token may match if the space is left out: the token would need the space; or begin a
piece, which then gets no mark; or stand before the space, which then gets a mark of its own."""
_JOINS = re.compile(r"[ ▁\n](?:(?<=[^\W\d_].)|(?<=<0x[0-9A-F]{2}>.))", re.DOTALL)
"""A letter, or a byte of one, and a space or newline, as entries of SentencePiece write them; found by its end, since
most entries have none."""


def cut_of(spec: Mapping[str, Any]) -> str:
    """Return where texts may be cut, for a parsed tokenizer.json: `BEFORE`, `AT`, or "" if they may not be cut.

    >>> cut_of({"model": {"type": "Unigram"}})
    ''
    """
    kind, tokens = spec["model"].get("type"), spec.get("added_tokens") or ()
    if any(map(_reaches_over, tokens)):
        return ""
    if kind != "BPE":
        return ""
    if split_by(spec.get("pre_tokenizer")) in SETTLED and steps(spec.get("normalizer")) in ([], [NFC]):
        return BEFORE
    known_shape = shape(spec) if spec["model"].get("byte_fallback") else ""
    if isinstance(known_shape, str) or _JOINS.search("\0".join(spec["model"]["vocab"])):
        return ""
    if not marks_beginnings(spec):
        return BEFORE
    return "" if any(_TAKES_THE_SPACE.search(token["content"]) for token in tokens) else AT


def _reaches_over(token: Mapping[str, Any]) -> bool:
    return bool(token.get("single_word") or _REACHES[bool(token.get("rstrip"))].search(token["content"]))


def pieces(text: str, cut: str) -> list[str]:
    """Cut a text into consecutive parts that may be encoded one by one; at least one part.

    Args:
        cut: where it may be cut, from `cut_of`.

    >>> pieces("short text", BEFORE)
    ['short text']
    """
    parts, at = [], 0
    while cut and len(text) - at > PIECE + 1 and (place := _last_cut(text, at, at + PIECE, cut)):
        parts.append(text[at:place])
        at = place + (cut == AT)
    return [*parts, text[at:]]


def _last_cut(text: str, start: int, limit: int, cut: str) -> int:
    """Return the last safe cut in (start, limit], near the limit; or the first one after it; 0 if there is none."""
    last = _LAST_FITS[cut].match(text, max(start, limit - _SEARCH) + 1, limit + 2)
    if last is not None:
        return last.end() - 1
    match = _FITS[cut].search(text, limit + 1)
    return match.start() if match else 0
