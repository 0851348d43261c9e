"""The fast encoder for byte-level BPE with any regular expression: Kimi K2, StarCoder, CLIP, BLOOM, Falcon.

It works through the steps of a tokenizer.json as `tokenizers` does, so it needs no list of patterns. It takes longer to
load than gigatoken. SentencePiece is left out, since a text such as `<0x41>` would become a byte.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from packtool.planning.plan import I64
from packtool.support.decoding import from_json
from packtool.text.encoding import unicode
from packtool.text.encoding.encoders import U32, Encode, EncoderRecipe, ReferenceEncoder, guarded
from packtool.text.encoding.families import BYTE_CHARACTERS, Shape, apart_of, kinds, steps
from packtool.text.encoding.spec import for_encoding

_STACK = 1 << 28
"""Bytes that a regular expression with look-ahead may take; words of some thousand letters reach the usual limit."""
_PRE_TOKENIZERS = {"Split", "Digits", "ByteLevel", "Punctuation"}
_NORMALIZERS = {"NFC", "Lowercase", "Replace"}
_READ_APART = re.compile(r"\\[^\WpPsSrnt]|\[\[:")
"""Classes such as ``\\w``, which the engines of regular expressions fill with other characters."""


def shape(spec: Mapping[str, Any]) -> Shape | str:
    """Return how fastokens encodes a tokenizer with a BPE, given by its parsed tokenizer.json, or why it does not.

    >>> shape({"model": {"type": "BPE", "byte_fallback": True}})
    'its BPE is not on bytes'
    """
    model = spec["model"]
    if model.get("byte_fallback") or "ByteLevel" not in kinds(spec.get("pre_tokenizer")):
        return "its BPE is not on bytes"
    if model.get("continuing_subword_prefix"):
        return "it has a prefix on continuing subwords"
    lacks_bytes = not model["vocab"].keys() >= BYTE_CHARACTERS
    if model.get("unk_token") and lacks_bytes:
        return "it has an unknown token, and bytes without an entry"
    # It looks for tokens in normalized text, too.
    apart = _unlike_steps(spec) or apart_of(spec.get("added_tokens") or (), [])
    if isinstance(apart, str):
        return apart
    return Shape(rewritten=_rewritten(spec), newer=unicode.PCRE, lacks_bytes=lacks_bytes, apart=apart)


def _rewritten(spec: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Return the pre-tokenizer with Split in place of Punctuation, which fastokens lacks; nothing for any other."""
    every = steps(spec["pre_tokenizer"])
    splits = list(map(_split_for, every))
    if splits == every:
        return ()
    return (("pre_tokenizer", json.dumps({"type": "Sequence", "pretokenizers": splits})),)


def _split_for(step: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the Split that does what a Punctuation does; other steps as they are."""
    if step["type"] != "Punctuation":
        return step
    pattern = {"Regex": unicode.pattern("punctuation")}
    return {"type": "Split", "pattern": pattern, "behavior": step["behavior"], "invert": False}


def _unlike_steps(spec: Mapping[str, Any]) -> str | None:
    """Name a step of the normalizer or pre-tokenizer that it lacks, or reads in another way."""
    before, after = spec.get("normalizer"), spec.get("pre_tokenizer")
    odd = [kind for kind in kinds(after) if kind not in _PRE_TOKENIZERS]
    if odd:
        return f"its pre-tokenizer is {odd[0]}"
    odd = [kind for kind in kinds(before) if kind not in _NORMALIZERS]
    if odd:
        return f"its normalizer is {odd[0]}"
    for step in [*steps(before), *steps(after)]:
        match = _READ_APART.search((step.get("pattern") or {}).get("Regex", ""))
        if match:
            return f"its regular expression has {match[0]}, which is read in several ways"
    return None


def prepared(data: bytes, recipe: EncoderRecipe) -> bytes:
    """Return the tokenizer.json that fastokens is loaded from, with an entry for every byte and every id, and no empty
    entry.

    A byte without an entry gets an id above all others: `tokenizers` leaves it out and joins its neighbours, so texts
    with one must go to it.
    """
    entries = for_encoding(data)
    vocab = from_json(entries["model"]["vocab"], dict[str, int])
    whole = {text: number for text, number in vocab.items() if text}
    whole |= {text: recipe.vocab_size + number for number, text in enumerate(sorted(BYTE_CHARACTERS - vocab.keys()))}
    if max(whole.values(), default=-1) >= len(whole):
        tokens = from_json(entries.get("added_tokens", b"[]"), list[dict[str, Any]] | None) or ()
        whole = {token["content"]: token["id"] for token in tokens} | whole
        gaps = set(range(max(whole.values()))) - set(whole.values())
        whole |= {f"\0{number}": number for number in gaps}  # what no bytes can become
    entries["model"]["vocab"] = whole
    entries |= {name: msgspec.Raw(value.encode()) for name, value in recipe.shape.rewritten}
    return msgspec.json.encode(entries)


def load(data: bytes, recipe: EncoderRecipe, reference: ReferenceEncoder) -> Encode:
    """Load fastokens, on one thread, for a tokenizer.json.

    Raises:
        EncoderUnsuitableError: fastokens does not support it after all.
    """
    del reference
    backend = guarded("fastokens", _load, prepared(data, recipe).decode(), loads=True)

    def encode(texts: Sequence[str], utf8: Sequence[bytes] | None = None) -> tuple[U32, I64]:
        del utf8  # the library takes strings
        options = {"split_special_tokens": recipe.special_as_text}
        ids, offsets = guarded("fastokens", backend.encode_batch_flat, list(texts), **options)
        ends: I64 = np.frombuffer(offsets, np.uint64).astype(np.int64)
        return np.frombuffer(ids, np.uint32), ends[1:] - ends[:-1]

    return encode


def _load(tokenizer: str) -> Any:
    from fastokens import Tokenizer

    try:
        return Tokenizer.from_json_str(tokenizer, pcre2_max_jit_stack_size=_STACK)
    except Exception:  # its other engine, for `[a&&b]` and the like, has no such limit, and refuses to be given one
        return Tokenizer.from_json_str(tokenizer)
