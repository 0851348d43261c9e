"""Encode long texts piece by piece where that provably gives the same ids, so that memory stays bounded.

A cut between a letter and a space or newline that follows it is safe when the tokenizer is a byte-level BPE whose
pre-tokenizer never joins a letter to whitespace after it: each pattern below scans from left to right, and none of its
alternatives goes on from a letter into whitespace, nor looks back. NFC never composes a letter with such whitespace.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Iterator, Mapping
from typing import Any

from packtool.corpus.records import Document

PIECE = 1 << 18
"""Characters of a piece, about; also the length up to which a text is encoded whole."""
_SEARCH = 1 << 12
_SPACE = re.compile("[ \\n]")
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_GPT4 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}%s"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_CASED = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+%(ending)s"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*%(ending)s|\p{N}%(digits)s"
    r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_O200K = _CASED % {"ending": "(?i:'s|'t|'re|'ve|'m|'ll|'d)?", "digits": "{1,3}"}
_SAFE_PATTERNS = {GPT2, _GPT4 % "{1,3}", _GPT4 % "", _O200K, _CASED % {"ending": "", "digits": ""}}
"""Those of GPT-2; GPT-4 and Llama 3; Qwen 2; GPT-4o and gpt-oss; Tekken."""


def can_cut(spec: Mapping[str, Any]) -> bool:
    """Whether texts may be cut after a letter and before whitespace, for a parsed tokenizer.json."""
    if spec["model"].get("type") != "BPE" or not _plain_normalizer(spec.get("normalizer")):
        return False
    for token in spec.get("added_tokens") or ():
        content = token["content"]
        loose = token.get("lstrip") or token.get("rstrip") or token.get("single_word")
        if loose or not content or any(character.isspace() for character in content):
            return False
    return _pattern(spec.get("pre_tokenizer")) in _SAFE_PATTERNS and not spec.get("truncation")


def _plain_normalizer(normalizer: Mapping[str, Any] | None) -> bool:
    return normalizer is None or normalizer["type"] == "NFC"


def _pattern(pre_tokenizer: Mapping[str, Any] | None) -> str | None:
    """The regular expression by which a byte-level pre-tokenizer splits, or None."""
    if pre_tokenizer is None:
        return None
    if pre_tokenizer["type"] == "ByteLevel":
        plain = pre_tokenizer.get("use_regex", True) and not pre_tokenizer.get("add_prefix_space")
        return GPT2 if plain else None
    steps = pre_tokenizer.get("pretokenizers", [])
    if [step["type"] for step in steps] != ["Split", "ByteLevel"]:
        return None
    split, byte_level = steps
    if split.get("behavior") != "Isolated" or split.get("invert") or byte_level.get("add_prefix_space"):
        return None
    if byte_level.get("use_regex", True):
        return None
    pattern = split["pattern"].get("Regex")
    return pattern if isinstance(pattern, str) else None


def pieces(document: Document, cuttable: bool) -> Iterator[str]:
    """Consecutive parts of a document that may be encoded one by one; at least one.

    >>> list(pieces("short text", True))
    ['short text']
    """
    if isinstance(document, str):
        if len(document) <= PIECE or not cuttable:
            yield document
        else:
            yield from _cut([document])
    elif cuttable:
        yield from _cut(document)
    else:
        yield "".join(document)


def _cut(parts: Iterable[str]) -> Iterator[str]:
    held = ""
    waiting: list[str] = []  # joined once a place to cut comes: joining and searching each time would be quadratic
    last = ""
    for part in parts:
        waiting.append(part)
        cut = _first_cut(last + part, 1)
        last = part[-1:] or last
        if not cut:
            continue
        held, waiting = held + "".join(waiting), []
        held = yield from _cut_off(held)
    held = yield from _cut_off(held + "".join(waiting))
    yield held


def _cut_off(text: str) -> Generator[str, None, str]:
    """Pieces from the beginning of a text; what is left is returned."""
    at = 0
    while len(text) - at > PIECE and (cut := _last_cut(text, at, at + PIECE)):
        yield text[at:cut]
        at = cut
    return text[at:]


def _last_cut(text: str, start: int, limit: int) -> int:
    """The last safe cut in (start, limit], looking back a little only; else the first one after; 0 for none."""
    low = max(start, limit - _SEARCH)
    for at in range(limit, low, -1):
        if text[at : at + 1] in (" ", "\n") and text[at - 1].isalpha():
            return at
    return _first_cut(text, limit + 1)


def _first_cut(text: str, start: int) -> int:
    """The first safe cut from `start`, which is above 0, on; 0 for none."""
    for match in _SPACE.finditer(text, start):
        if text[match.start() - 1].isalpha():
            return match.start()
    return 0
