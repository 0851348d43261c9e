"""Which encoder runs, and why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from packtool.errors import UsageError
from packtool.tokenizing import gigatoken, splintr
from packtool.tokenizing.encoders import Encoder, EncoderUnsuitableError, ReferenceEncoder
from packtool.tokenizing.families import Shape, shape
from packtool.tokenizing.load import vocabulary_size
from packtool.tokenizing.pieces import cut_of
from packtool.tokenizing.spec import parse
from packtool.tokenizing.verify import Verified, probes

SMALL_INPUT = 0.125
"""Bytes of input, for each byte of the tokenizer.json, that the reference encodes in less time than it takes to load
another encoder beside it: that time grows with the vocabulary."""
ENCODERS = ("auto", "tokenizers", "gigatoken", "splintr")


def choose(spec: Mapping[str, Any], wanted: str = "auto") -> tuple[str, str]:
    """The encoder to use, and why, from the tokenizer.json alone; loads nothing.

    Args:
        spec: the parsed tokenizer.json.
        wanted: one of `ENCODERS`.

    Raises:
        UsageError: no such encoder, or a fast one asked for where it is not installed or known to be right.
    """
    if wanted not in ENCODERS:
        raise UsageError(
            "unknown-encoder", f"no encoder {wanted!r}", remedy=f"choose {', '.join(ENCODERS)}", where="--encoder"
        )
    if wanted == "tokenizers":
        return wanted, "asked for"
    fast = "splintr" if wanted == "splintr" or _for_splintr(spec, wanted) else "gigatoken"
    why = _why_not(fast, spec)
    if not why:
        return fast, f"the tokenizer is one that {fast} encodes exactly, verified as it runs"
    if wanted == fast:
        remedy = "give --encoder auto or tokenizers"
        raise EncoderUnsuitableError("encoder-unsuitable", why, remedy=remedy, where="--encoder")
    return "tokenizers", why


def _for_splintr(spec: Mapping[str, Any], wanted: str) -> bool:
    return wanted == "auto" and splintr.unsuitable(spec) is None


def _why_not(fast: str, spec: Mapping[str, Any]) -> str:
    """Why a fast encoder can't be used; empty if it can."""
    library = splintr if fast == "splintr" else gigatoken
    if not library.installed():
        return f"{fast} is not installed"
    reason = splintr.unsuitable(spec) if fast == "splintr" else shape(spec)
    return f"{fast} does not support this tokenizer: {reason}" if isinstance(reason, str) else ""


def reference_if_small(encoder: str, why: str, size: int, tokenizer: int) -> tuple[str, str]:
    """The encoder that `choose` chose by itself, or the reference where the input is too small to load another.

    Args:
        encoder, why: as `choose` returned them.
        size: of the input, in bytes.
        tokenizer: size of the tokenizer.json, in bytes.
    """
    if encoder == "tokenizers" or size > SMALL_INPUT * tokenizer:
        return encoder, why
    return "tokenizers", f"the input is so small that loading {encoder} would take longer"


class EncoderRecipe(msgspec.Struct, frozen=True):
    """What a worker must know to load an encoder, beside the tokenizer.json itself.

    Attributes:
        encoder: as `choose` returned it.
        vocab_size: one more than the largest id.
        special_as_text: encode special tokens that occur in a text as plain text.
        cut: how long texts may be cut (see pieces.py).
        shape: of the tokenizer, where the encoder is gigatoken.
        newer: names of the sets of characters whose texts go to the reference (see unicode.py).
        added_tokens: texts of its added tokens.
    """

    encoder: str
    vocab_size: int
    special_as_text: bool
    cut: str
    shape: Shape | None
    newer: tuple[str, ...]
    added_tokens: tuple[str, ...]


def recipe(spec: Mapping[str, Any], encoder: str, vocab_size: int, *, special_as_text: bool = False) -> EncoderRecipe:
    """The recipe for a parsed tokenizer.json."""
    found = shape(spec) if encoder == "gigatoken" else None
    known = found if isinstance(found, Shape) else None
    return EncoderRecipe(
        encoder=encoder,
        vocab_size=vocab_size,
        special_as_text=special_as_text,
        cut=cut_of(spec),
        shape=known,
        newer=splintr.newer(spec) if encoder == "splintr" else () if known is None else known.newer,
        added_tokens=tuple(token["content"] for token in spec.get("added_tokens") or ()),
    )


def build(data: bytes, encoder: str) -> Verified:
    """Load an encoder from a tokenizer.json alone; see `load_encoder`."""
    spec = parse(data)
    return load_encoder(recipe(spec, encoder, vocabulary_size(spec, data)), data)


def load_encoder(recipe: EncoderRecipe, data: bytes) -> Verified:
    """Load an encoder; the fast one is probed first.

    Args:
        recipe: what to load.
        data: the tokenizer.json.

    Raises:
        EncoderUnsuitableError: the fast encoder does not support the tokenizer after all.
        EncoderMismatchError: it differs from the reference on a probe.
    """
    reference = ReferenceEncoder(data, special_as_text=recipe.special_as_text)
    if recipe.encoder == "tokenizers":
        return Verified(reference, None, cut=recipe.cut)
    fast: Encoder
    if recipe.encoder == "splintr":
        fast = splintr.SplintrEncoder(data, special_as_text=recipe.special_as_text)
    else:
        assert recipe.shape is not None
        fast = gigatoken.GigatokenEncoder(
            data,
            recipe.shape,
            recipe.vocab_size,
            spell=lambda character: reference.encode([character])[0],
            special_as_text=recipe.special_as_text,
        )
    encoder = Verified(fast, reference, cut=recipe.cut, newer=recipe.newer)
    encoder.require(probes(recipe.added_tokens))
    return encoder
