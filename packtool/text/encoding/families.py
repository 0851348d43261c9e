"""Decide which tokenizers the fast encoder is right for, and what it takes to make it so.

gigatoken can be silently wrong on shapes that its authors did not think of. So a tokenizer.json is compared with the
shapes below, entry by entry, and what fits is handed over in the plainest form that means the same.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from packtool.text.encoding import unicode

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
"""GPT-2, GPT-NeoX, RoBERTa; what ByteLevel splits by itself."""

_WHITE = r"|\s*[\r\n]+|\s+(?!\S)|\s+"
_GPT4 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}%s| ?[^\s\p{L}\p{N}]+[\r\n]*" + _WHITE
GPT4 = _GPT4 % "{1,3}"
"""GPT-3.5 and GPT-4 (cl100k), Llama 3, OLMo 2."""
QWEN2 = _GPT4 % ""
"""Qwen 2 and 3."""

QWEN35 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*" + _WHITE
"""Qwen 3.5 and later, where marks go with letters."""

_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_CASED = (
    rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+%(ending)s|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*%(ending)s"
    r"|\p{N}%(digits)s| ?[^\s\p{L}\p{N}]+[\r\n/]*" + _WHITE
)
O200K = _CASED % {"ending": "(?i:'s|'t|'re|'ve|'m|'ll|'d)?", "digits": "{1,3}"}
"""GPT-4o and gpt-oss."""
TEKKEN = _CASED % {"ending": "", "digits": ""}
"""Mistral Nemo and later."""

DEEPSEEK = (
    r"\p{N}{1,3}",
    "[一-龥\u3040-ゟ゠-ヿ]+",
    r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|"""
    "[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*" + _WHITE.replace(r"\r\n", "\r\n"),
)
"""The three of DeepSeek V3 and later, one after the other."""

COVERING = frozenset({GPT4, QWEN2, QWEN35, O200K, TEKKEN})
"""Every character is a letter (or a mark), a number, whitespace, or in the class of all others: no text is left between
two matches, so that keeping matches only is the same as isolating them."""

SETTLED = frozenset({(GPT2,), (GPT4,), (QWEN2,), (QWEN35,), (O200K,), (TEKKEN,), DEEPSEEK})
"""None of their alternatives goes on from a letter or number into whitespace, nor looks back."""

NFC = {"type": "NFC"}
_MOST_APART = 16  # most added tokens that every text is searched for


class Shape(msgspec.Struct, frozen=True):
    """The way in which a fast encoder encodes with a tokenizer; `rewritten` is for any of them, `newer`, `lacks_bytes`
    and `apart` say which texts are not for it, and the others are passed to gigatoken.
    """

    rewritten: tuple[tuple[str, str], ...] = ()  # entries of the tokenizer.json to replace, and the JSON instead
    joined: bool = True  # a batch may be encoded as one text with a special token between its texts
    digits: bool = False  # every numeric character is a pre-token of its own (see gigatoken.py)
    foreign: bool = False  # the vocabulary has entries that are not byte-level strings, which must be left out
    newer: tuple[str, ...] = ()  # names of the sets of characters whose texts go to the reference (see unicode.py)
    lacks_bytes: bool = False  # some bytes have no entry, and texts with one go to the reference
    apart: tuple[str, ...] = ()  # added tokens that it finds otherwise; texts that spell one go to the reference


def shape(spec: Mapping[str, Any]) -> Shape | str:
    """Return how gigatoken encodes a tokenizer with a BPE, given by its parsed tokenizer.json, or why it does not.

    >>> shape({"model": {"type": "BPE", "end_of_word_suffix": "</w>"}})
    'it has a suffix on words'
    """
    model = spec["model"]
    if model.get("continuing_subword_prefix"):
        return "it has a prefix on continuing subwords"
    if model.get("end_of_word_suffix"):
        return "it has a suffix on words"
    return _sentencepiece(spec) if model.get("byte_fallback") else _byte_level(spec)


def _byte_level(spec: Mapping[str, Any]) -> Shape | str:
    """Recognise BPE on bytes: GPT-2 and all that followed it."""
    if spec["model"].get("unk_token"):
        return "it has an unknown token"
    if not BYTE_CHARACTERS.issubset(spec["model"].get("vocab") or ()):
        return "some bytes have no entry"
    before = steps(spec.get("normalizer"))
    if before not in ([], [NFC]):
        return f"its normalizer is {' + '.join(kinds(spec['normalizer']))}, not NFC or none"
    pre_tokenizer = _pre_tokenizer(spec.get("pre_tokenizer"))
    if isinstance(pre_tokenizer, str):
        return pre_tokenizer
    tokens = spec.get("added_tokens") or ()
    digits = kinds(spec["pre_tokenizer"])[0] == "Digits"
    apart = apart_of(tokens, before, digits=digits)
    if isinstance(apart, str):
        return apart
    rewritten = {"normalizer": NFC if before else None, "pre_tokenizer": pre_tokenizer}
    return Shape(
        rewritten=tuple((name, json.dumps(value)) for name, value in rewritten.items() if value != spec.get(name)),
        digits=digits,
        foreign=_foreign(spec["model"].get("vocab") or (), tokens),
        newer=unicode.NFC if before else unicode.PATTERNS,
        apart=apart,
    )


def steps(of: Mapping[str, Any] | None) -> list[Mapping[str, Any]]:
    """List the steps of a normalizer or pre-tokenizer, in order.

    >>> steps(None), steps({"type": "Sequence", "normalizers": [{"type": "NFC"}]})
    ([], [{'type': 'NFC'}])
    """
    if of is None:
        return []
    return list(of.get("normalizers") or of.get("pretokenizers") or ()) if of["type"] == "Sequence" else [of]


def kinds(of: Mapping[str, Any] | None) -> list[str]:
    """List the types of the steps of a normalizer or pre-tokenizer."""
    return [step["type"] for step in steps(of)]


def split_by(pre_tokenizer: Mapping[str, Any] | None) -> tuple[str, ...] | None:
    """List the regular expressions by which a byte-level pre-tokenizer isolates, in order; None if it does something
    else.

    >>> split_by({"type": "ByteLevel"}) == (GPT2,)
    True
    """
    *splits, last = steps(pre_tokenizer) or [{"type": None}]
    if last["type"] != "ByteLevel" or last.get("add_prefix_space"):
        return None
    if not splits or [step["type"] for step in splits] == ["Digits"]:
        return (GPT2,) if last.get("use_regex", True) else None
    patterns = []
    for step in splits:
        pattern = (step.get("pattern") or {}).get("Regex") if step["type"] == "Split" else None
        if pattern is None or last.get("use_regex", True) or not _isolates(step, pattern):
            return None
        patterns.append(pattern)
    return tuple(patterns)


def _isolates(split: Mapping[str, Any], pattern: str) -> bool:
    if split.get("behavior") == "Isolated" and not split.get("invert"):
        return True
    # To remove what does not match is to isolate, where every character matches.
    return split.get("behavior") == "Removed" and split.get("invert") is True and pattern in COVERING


def _pre_tokenizer(pre_tokenizer: Mapping[str, Any] | None) -> Mapping[str, Any] | str:
    """Return the plainest pre-tokenizer with the same effect, or the reason why gigatoken has no such pre-tokenizer."""
    splits, every = split_by(pre_tokenizer), steps(pre_tokenizer)
    runs = any(step["type"] == "Digits" and not step.get("individual_digits") for step in every)
    if splits is None or splits not in SETTLED or runs:
        return f"its pre-tokenizer, {' + '.join(kinds(pre_tokenizer)) or 'none'}, does not split as any that is listed"
    if every[0]["type"] != "Split":
        return every[-1]
    isolated = [
        {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False} for pattern in splits
    ]
    return {"type": "Sequence", "pretokenizers": [*isolated, every[-1]]}


def apart_of(
    tokens: Collection[Mapping[str, Any]], before: Sequence[Mapping[str, Any]], *, digits: bool = False
) -> tuple[str, ...] | str:
    """List the added tokens that the encoders find otherwise than the reference, after these normalizers.

    A text without such a token is encoded alike, so only texts that contain one go to the reference.

    Returns:
        The texts of these tokens; or the reason why texts that contain one can't be recognised, or that there are too
        many such tokens.

    >>> apart_of([{"content": "fox", "single_word": True}, {"content": "ox"}], [])
    ('fox',)
    """
    later = [token["content"] for token in tokens if token.get("normalized")]
    for text in later:
        if before and not (before == [NFC] and _inert(text)):
            return f"its added token {text!r} is looked for in normalized text"
        if digits and any(unicode.table("numeric")[ord(character)] for character in text):
            return f"its added token {text!r} is looked for after its digits"
    apart = [token["content"] for token in tokens if token.get("single_word")]
    # Between a token that strips spaces and one that has them, encoders disagree about which gets the spaces.
    strips = [token["content"] for token in tokens if token.get("lstrip") or token.get("rstrip")]
    if any(token["content"] != token["content"].strip() for token in tokens):
        apart += strips
    # tokenizers looks for normalized tokens in the text between the others; gigatoken takes the leftmost and longest of
    # all. Both find the same unless a normalized token can begin before another one and overlap it.
    first = [token["content"] for token in tokens if not token.get("normalized")]
    beginnings: set[str] = set()
    if later:
        for text in first:
            beginnings.update(text[:size] for size in range(1, len(text) + 1))
    for text in later:
        overlaps = any(text[at:] in beginnings for at in range(len(text)))
        if overlaps or any(other in text for other in first):
            apart.append(text)
    if len(apart) > _MOST_APART:
        return f"its added tokens {apart[0]!r} and {len(apart) - 1} others are looked for in an unusual way"
    return tuple(dict.fromkeys(apart))


def _inert(text: str) -> bool:
    """Return whether NFC neither makes nor destroys a text, wherever it stands.

    ASCII stays as it is, unless a mark follows a letter or one of ``<=>``, and comes from nothing else but the three
    characters that Unicode equates with others: ``;`` (the Greek question mark), a backtick and K (the Kelvin sign).

    >>> _inert("|||IP_ADDRESS|||"), _inert("    "), _inert("<b>"), _inert("OK|")
    (True, True, False, False)
    """
    return text.isascii() and not set(text) & set(";`K") and not (text[-1].isalpha() or text[-1] in "<=>")


def bytes_of_characters() -> dict[str, int]:
    """Return the byte behind each character of a byte-level vocabulary.

    >>> bytes_of_characters()["Ġ"], bytes_of_characters()["a"]
    (32, 97)
    """
    shown = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = sorted(set(range(256)) - set(shown))
    return {chr(byte): byte for byte in shown} | {chr(0x100 + place): byte for place, byte in enumerate(others)}


def _foreign(vocab: Collection[str], tokens: Iterable[Mapping[str, Any]]) -> bool:
    """Return whether a vocabulary has entries, other than added tokens, that no bytes can become.

    gigatoken takes each entry for bytes, so that such an entry takes the place of another.
    """
    if not _NOT_BYTES.search("".join(vocab)):
        return False
    known = {token["content"] for token in tokens}
    return any(_NOT_BYTES.search(text) and text not in known for text in vocab)


BYTE_CHARACTERS = frozenset(bytes_of_characters())
"""The 256 characters that stand for bytes."""
_NOT_BYTES = re.compile(f"[^{re.escape(''.join(sorted(BYTE_CHARACTERS)))}]")
_SPACES = {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
_PREPENDED = {"type": "Prepend", "prepend": "▁"}
_SPLIT_AT_SPACES = {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious", "invert": False}
_METASPACE = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": False}


def _sentencepiece(spec: Mapping[str, Any]) -> Shape | str:
    """Recognise BPE on characters, as SentencePiece trains it: Llama 2, Mistral, Gemma, Yi, Phi 3, InternLM 2."""
    model, pre_tokenizer = spec["model"], spec.get("pre_tokenizer")
    if model.get("ignore_merges"):
        return "it takes whole words before it merges"
    # An ASCII character that is an entry itself needs no byte to fall back to.
    entries = model["vocab"]
    if any(f"<0x{byte:02X}>" not in entries and (byte > 0x7F or chr(byte) not in entries) for byte in range(256)):
        return "it has byte fallback, but not for every byte"
    marks = steps(spec.get("normalizer"))
    # The tokenizer of a Metaspace marks the begin of a text alone, and gigatoken every begin after a separator, too: so
    # texts can't be joined.
    joined = bool(marks)
    if marks in ([_SPACES], [_PREPENDED, _SPACES]):
        # Gemma's split at spaces has no effect: the normalizer has replaced all spaces before.
        if pre_tokenizer not in (None, _SPLIT_AT_SPACES):
            return f"its pre-tokenizer is {' + '.join(kinds(pre_tokenizer))}"
    elif marks or pre_tokenizer != _METASPACE:
        return "it has byte fallback, and marks spaces in an unknown way"
    apart = apart_of(spec.get("added_tokens") or (), marks)
    return apart if isinstance(apart, str) else Shape(joined=joined, apart=apart)


def marks_beginnings(spec: Mapping[str, Any]) -> bool:
    """Return whether a text that begins with a letter gets a mark as if it began with a space."""
    return spec.get("pre_tokenizer") == _METASPACE or _PREPENDED in steps(spec.get("normalizer"))


def guard(spec: Mapping[str, Any]) -> str:
    """Return a character to put before a text, so that the tokenizer's mark goes to the character; "" without a mark.

    The ids of the mark and the character come first: drop them, and the ids of the text remain. The character becomes a
    byte token, and is joined with nothing, since no entry of the vocabulary has it. Code Llama's own tokenizer does so
    with a smiley.
    """
    model = spec["model"]
    if not (marks_beginnings(spec) and model.get("byte_fallback")):
        return ""
    known = "".join([*model["vocab"], *(token["content"] for token in spec.get("added_tokens") or ())])
    free = (code for code in range(1, 0x20) if chr(code) not in known and f"<0x{code:02X}>" in model["vocab"])
    return next(map(chr, free), "")
