"""The fast encoder for Unigram, as T5 and XLM-R have it, and for WordPiece as BERT does: an optional library."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from packtool.encoding import unicode
from packtool.encoding.encoders import U32, Encode, EncoderRecipe, ReferenceEncoder, guarded, unsuitable_error
from packtool.encoding.families import Shape, kinds, steps, unlike_added
from packtool.encoding.spec import for_encoding
from packtool.plan import I64


def shape(spec: Mapping[str, Any]) -> Shape | str:
    """Return how splintr encodes a tokenizer, given by its parsed tokenizer.json, or why it does not."""
    words = spec["model"]["type"] == "WordPiece"
    reason = unlike_bert(spec) if words else _unlike_sentencepiece(spec)
    reason = reason or unlike_added(spec.get("added_tokens") or (), steps(spec.get("normalizer")) or [{}]) or ""
    return reason or Shape(newer=unicode.BERT if words else ())


def unlike_bert(spec: Mapping[str, Any]) -> str:
    """Describe how a WordPiece differs from those that were compared; empty if it does not."""
    model = spec["model"]
    if (model.get("continuing_subword_prefix", "##"), model.get("max_input_chars_per_word", 100)) != ("##", 100):
        return "its words go on with another prefix than ##, or end after another number of characters than 100"
    if model.get("unk_token") not in model["vocab"]:
        return "its vocabulary lacks the unknown token"
    if kinds(spec.get("normalizer")) != ["BertNormalizer"]:
        return "its normalizer is not BERT's"
    if kinds(spec.get("pre_tokenizer")) != ["BertPreTokenizer"]:
        return "its pre-tokenizer is not BERT's"
    return ""


def _unlike_sentencepiece(spec: Mapping[str, Any]) -> str:
    """Describe how a Unigram differs from those that were compared; empty if it does not."""
    rules = [step for step in steps(spec.get("normalizer")) if step != _ONE_SPACE]
    if [step["type"] for step in rules] != ["Precompiled"] and not all(map(_replaces_text, rules)):
        return "its normalizer is not one of SentencePiece"
    *splits, last = steps(spec.get("pre_tokenizer")) or [{"type": None}]
    if not _marks_words(last) or [step["type"] for step in splits] not in ([], ["WhitespaceSplit"]):
        return "its pre-tokenizer does not mark words as SentencePiece does"
    return ""


_ONE_SPACE = {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}


def _replaces_text(step: Mapping[str, Any]) -> bool:
    """Return whether a step replaces one text by another, as some files do without a precompiled table; spaces stay."""
    if step["type"] != "Replace" or "String" not in step["pattern"]:
        return False
    return not re.search("[ ▁]", step["pattern"]["String"] + step["content"])


def _marks_words(step: Mapping[str, Any]) -> bool:
    """Return whether a step is Metaspace that begins every word with a mark; older files write it in another way."""
    scheme = step.get("prepend_scheme") or ("always" if step.get("add_prefix_space", True) else "never")
    return (
        step["type"] == "Metaspace"
        and step.get("replacement") == "▁"
        and scheme in ("always", "first")
        and step.get("split") is not False  # texts of one word are where it was wrong
    )


def prepared(data: bytes, recipe: EncoderRecipe) -> bytes:
    """Return the tokenizer.json that splintr is loaded from."""
    del recipe
    return msgspec.json.encode(for_encoding(data))


def load(prepared: bytes, recipe: EncoderRecipe, reference: ReferenceEncoder) -> Encode:
    """Load splintr, on one thread, from what the function `prepared` made.

    Raises:
        EncoderUnsuitableError: special tokens are to be encoded as text, or splintr does not support it after all.
    """
    del reference
    if recipe.special_as_text:
        raise unsuitable_error("splintr does not encode special tokens as text")
    from splintr import from_json_bytes

    backend = guarded("splintr", from_json_bytes, prepared, loads=True)

    def encode(texts: Sequence[str], utf8: Sequence[bytes] | None = None) -> tuple[U32, I64]:
        del utf8  # the library takes strings
        parts = guarded("splintr", lambda: list(map(backend.encode_flat, texts)))
        ids = np.frombuffer(b"".join(parts), np.uint32)
        return ids, np.fromiter(map(len, parts), np.int64, len(parts)) // ids.itemsize

    return encode
