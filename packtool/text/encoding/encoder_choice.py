"""Choose the encoder, and say why."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import msgspec

from packtool.errors import UsageError
from packtool.text.encoding import families, fastokens, gigatoken
from packtool.text.encoding.encoders import Encode, EncoderRecipe, ReferenceEncoder, unsuitable_error
from packtool.text.encoding.families import Shape
from packtool.text.encoding.load import FoundTokenizer
from packtool.text.encoding.long_texts import cut_of
from packtool.text.encoding.spec import repeated_merge
from packtool.text.encoding.verify import Verified, probes


class Fast(NamedTuple):
    """A fast encoder."""

    shape: Callable[[Mapping[str, Any]], Shape | str]  # how it encodes a parsed tokenizer.json, or why it does not
    load: Callable[[bytes, EncoderRecipe, ReferenceEncoder], Encode]  # loads it for a tokenizer.json


FAST = {
    "gigatoken": Fast(families.shape, gigatoken.GigatokenEncoder),
    "fastokens": Fast(fastokens.shape, fastokens.load),
}
"""The best encoder first."""
ENCODERS = ("auto", "tokenizers", *FAST)
_GAPS = 1 << 16  # ids without an entry that any file may have: libraries allocate tables up to the largest id
LITTLE = 3 << 18
"""Bytes of text below which the reference encodes alone: it is done before a fast encoder would be loaded and probed.
The ids are the same by what a fast encoder is held to. Measured on prose and code: both take as long at 0.9 MB (p50k)
and 1.5 MB (cl100k)."""


def choose_encoder(
    tokenizer: FoundTokenizer, wanted: str = "auto", *, special_as_text: bool = False, text_bytes: int | None = None
) -> EncoderRecipe:
    """Choose the encoder, and give the reason, from the tokenizer.json, the amount of text and what is installed; no
    encoder is loaded.

    Args:
        wanted: one of `ENCODERS`.
        special_as_text: see `EncoderRecipe`.
        text_bytes: the most that there is to encode; None if that is not known.

    Raises:
        UsageError: no such encoder, or a fast one asked for where it is not installed or known to be right.
    """
    if wanted not in ENCODERS:
        what, remedy = f"no encoder {wanted!r}", f"choose {', '.join(ENCODERS)}"
        raise UsageError("unknown-encoder", what, remedy=remedy, where="--encoder")
    spec = tokenizer.spec
    recipe = partial(
        EncoderRecipe,
        cut=cut_of(spec),
        added_tokens=tuple(tokenizer.added),
        vocab_size=tokenizer.vocab_size,
        special_as_text=special_as_text,
    )
    if wanted == "tokenizers":
        return recipe(encoder="tokenizers", why="asked for", shape=Shape())
    if wanted == "auto" and text_bytes is not None and text_bytes < LITTLE:
        return recipe(encoder="tokenizers", why="a faster encoder is loaded only for more text", shape=Shape())
    kind = spec["model"].get("type")
    strange = _odd(spec, tokenizer.vocab, tokenizer.data) if kind == "BPE" else ""
    reasons: list[str] = []
    fitting: list[EncoderRecipe] = []
    for name in FAST if wanted == "auto" else [wanted]:
        shape = strange or (FAST[name].shape(spec) if kind == "BPE" else f"its model is {kind}, not BPE")
        if not installed(name):
            reasons.append(f"{name} is not installed")
        elif isinstance(shape, str):
            reasons.append(f"{name} does not support this tokenizer: {shape}")
        else:
            why = "exact for this tokenizer, verified as it runs"
            fitting.append(recipe(encoder=name, why=why, shape=shape))
    if wanted == "auto":
        fitting.append(recipe(encoder="tokenizers", why="; ".join(reasons), shape=Shape()))
    elif not fitting:
        raise unsuitable_error(reasons[0])
    return msgspec.structs.replace(fitting[0], rest=tuple(fitting[1:]))


def installed(encoder: str) -> bool:
    """Return whether an encoder can be imported: some platforms lack one."""
    return importlib.util.find_spec(encoder) is not None


def load_encoder(recipe: EncoderRecipe, data: bytes) -> Verified:
    """Load an encoder for a tokenizer.json; the fast one is probed first.

    Raises:
        EncoderUnsuitableError: the fast encoder does not support the tokenizer after all.
        EncoderMismatchError: it differs from the reference on a probe.
    """
    reference = ReferenceEncoder(data, special_as_text=recipe.special_as_text)
    if recipe.encoder == "tokenizers":
        return Verified(reference.encode, reference, recipe)
    encoder = Verified(FAST[recipe.encoder].load(data, recipe, reference), reference, recipe)
    encoder.require(probes(recipe.added_tokens))
    return encoder


def _odd(spec: Mapping[str, Any], vocab: Mapping[str, int], data: bytes) -> str:
    """Describe what two libraries may read in two ways in a tokenizer.json; empty if there is nothing.

    No trainer writes such files. They are made by hand, or by conversions that drop an entry and leave the ids.

    Args:
        spec: parsed.
        vocab: every token's id, as `tokenizers` gives it.
        data: the file.

    >>> _odd({"model": {}, "added_tokens": [{"content": "<x>", "id": 7}]}, {"a": 0, "<x>": 1}, b"{}")
    "its added token '<x>' has the id 7 in the file, and 1 in use"
    """
    added = spec.get("added_tokens") or ()
    contents = [token["content"] for token in added]
    largest = max(vocab.values(), default=0)
    if largest > 4 * len(vocab) + _GAPS:
        return f"its largest id is {largest:,}, of {len(vocab):,} entries"
    if len(set(vocab.values())) < len(vocab):
        return "two of its entries have one id"
    if "" in contents or len(set(contents)) < len(contents):
        return "an added token is empty, or given twice"
    for token in added:
        text, number = token["content"], token.get("id")
        if number != vocab.get(text):
            return f"its added token {text!r} has the id {number} in the file, and {vocab.get(text)} in use"
    merge = repeated_merge(data)
    if merge is not None:
        return f"its merge {merge!r} is given twice"
    return ""
