"""Which encoder runs, and why."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from packtool.errors import UsageError
from packtool.tokenizing import families, fastokens, findings, gigatoken, splintr
from packtool.tokenizing.encoders import Encoder, ReferenceEncoder, unsuitable_error
from packtool.tokenizing.families import Shape
from packtool.tokenizing.load import LoadedTokenizer, vocabulary_size
from packtool.tokenizing.long_texts import cut_of
from packtool.tokenizing.spec import parse
from packtool.tokenizing.verify import Verified, probes

SMALL_INPUT = 0.125
"""Bytes of input, for each byte of the tokenizer.json, that the reference encodes in less time than it takes to load
another encoder beside it: that time grows with the vocabulary."""
_FAST = {
    "gigatoken": (("BPE",), families.shape),
    "fastokens": (("BPE",), fastokens.shape),
    "splintr": (("Unigram", "WordPiece"), splintr.shape),
}
"""Models, and what tells how the encoder encodes one of them; the best encoder first."""
ENCODERS = ("auto", "tokenizers", *_FAST)


def choose(spec: Mapping[str, Any], wanted: str = "auto") -> tuple[str, str]:
    """Choose the encoder, and say why, from the tokenizer.json alone; load nothing.

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
    kind = spec["model"].get("type")
    reasons = []
    for name in [wanted] if wanted != "auto" else [name for name, (kinds, _) in _FAST.items() if kind in kinds]:
        why = _why_not(name, spec)
        if not why:
            return name, f"the tokenizer is one that {name} encodes exactly, verified as it runs"
        reasons.append(why)
    why = "; ".join(reasons) or f"its model is {kind}, which has no other encoder"
    if wanted != "auto":
        raise unsuitable_error(why)
    return "tokenizers", why


def installed(encoder: str) -> bool:
    """Return whether an encoder can be imported: some platforms lack one, and splintr comes with an extra."""
    return importlib.util.find_spec(encoder) is not None


def _why_not(fast: str, spec: Mapping[str, Any]) -> str:
    """Say why a fast encoder can't be used; empty if it can."""
    if not installed(fast):
        return f"{fast} is not installed"
    (kinds, shape), kind = _FAST[fast], spec["model"].get("type")
    found = shape(spec) if kind in kinds else f"its model is {kind}, not {' or '.join(kinds)}"
    return f"{fast} does not support this tokenizer: {found}" if isinstance(found, str) else ""


class EncoderRecipe(msgspec.Struct, frozen=True):
    """What a worker must know to load an encoder, beside the tokenizer.json itself.

    Attributes:
        encoder: as `choose` returned it.
        vocab_size: one more than the largest id.
        special_as_text: encode special tokens that occur in a text as plain text.
        cut: how long texts may be cut (see long_texts.py).
        shape: of the tokenizer.
        added_tokens: texts of its added tokens.
        why: it was chosen.
        verified: file that tells of an earlier run which found it right (see findings.py); empty to keep and use none.
    """

    encoder: str
    vocab_size: int
    special_as_text: bool
    cut: str
    shape: Shape
    added_tokens: tuple[str, ...]
    why: str = ""
    verified: str = ""


def recipe(
    spec: Mapping[str, Any],
    encoder: str,
    vocab_size: int,
    *,
    special_as_text: bool = False,
    why: str = "",
) -> EncoderRecipe:
    """Make the recipe for a parsed tokenizer.json."""
    shape = _FAST[encoder][1](spec) if encoder in _FAST else Shape()
    return EncoderRecipe(
        encoder=encoder,
        vocab_size=vocab_size,
        special_as_text=special_as_text,
        cut=cut_of(spec),
        shape=shape if isinstance(shape, Shape) else Shape(),
        added_tokens=tuple(token["content"] for token in spec.get("added_tokens") or ()),
        why=why,
    )


def settle(tokenizer: LoadedTokenizer, wanted: str, *, special_as_text: bool, kept: Path | None) -> EncoderRecipe:
    """Choose the encoder and make its recipe, or return the one that an earlier run made.

    Args:
        wanted: one of `ENCODERS`.
        kept: where earlier runs kept what they found (see findings.py).

    Raises:
        UsageError: as `choose` does.
    """
    data, size = tokenizer.info.sha256, tokenizer.info.vocab_size

    def choice() -> EncoderRecipe:
        encoder, why = choose(tokenizer.spec, wanted)
        return recipe(tokenizer.spec, encoder, size, special_as_text=special_as_text, why=why)

    asked = findings.finding(kept, "recipe", data, wanted, special_as_text)
    made = findings.found(asked, EncoderRecipe, choice)
    verified = findings.finding(kept, "verified", data, made.encoder, special_as_text)
    return msgspec.structs.replace(made, verified=str(verified or ""))


def reference_if_small(recipe: EncoderRecipe, size: int, tokenizer: int) -> EncoderRecipe:
    """Return the recipe that `settle` made by itself, or the reference's if the input is too small to load another.

    Args:
        recipe: as `settle` returned it.
        size: of the input, in bytes.
        tokenizer: size of the tokenizer.json, in bytes.
    """
    if recipe.encoder == "tokenizers" or size > SMALL_INPUT * tokenizer:
        return recipe
    return instead(recipe, f"the input is so small that loading {recipe.encoder} would take longer")


def instead(recipe: EncoderRecipe, why: str) -> EncoderRecipe:
    """Return the recipe of the reference in place of another."""
    return msgspec.structs.replace(recipe, encoder="tokenizers", why=why)


def build(data: bytes, encoder: str) -> Verified:
    """Load an encoder from a tokenizer.json alone; see `load_encoder`."""
    spec = parse(data)
    return load_encoder(recipe(spec, encoder, vocabulary_size(spec, data)), data)


def load_encoder(recipe: EncoderRecipe, data: bytes) -> Verified:
    """Load an encoder; the fast one is probed first, unless an earlier run found it right.

    Args:
        recipe: what to load.
        data: the tokenizer.json.

    Raises:
        EncoderUnsuitableError: the fast encoder does not support the tokenizer after all.
        EncoderMismatchError: it differs from the reference on a probe.
    """
    reference = ReferenceEncoder(data, special_as_text=recipe.special_as_text)
    if recipe.encoder == "tokenizers":
        reference.load()  # before others are forked from this process, which then share it
        return Verified(reference, None, cut=recipe.cut, vocab_size=recipe.vocab_size)
    fast: Encoder
    if recipe.encoder == "splintr":
        fast = splintr.SplintrEncoder(data, special_as_text=recipe.special_as_text)
    elif recipe.encoder == "fastokens":
        fast = fastokens.FastokensEncoder(data, recipe.vocab_size, special_as_text=recipe.special_as_text)
    else:
        fast = gigatoken.GigatokenEncoder(
            data,
            recipe.shape,
            recipe.vocab_size,
            spell=lambda character: reference.encode([character])[0],
            special_as_text=recipe.special_as_text,
        )
    verified = Path(recipe.verified) if recipe.verified else None
    known = verified is not None and verified.is_file()
    encoder = Verified(
        fast,
        reference,
        cut=recipe.cut,
        vocab_size=recipe.vocab_size,
        newer=recipe.shape.newer,
        verified=verified,
        patience=_WORTH_LOADING * len(data) if known else 0,
    )
    if not known:
        encoder.require(probes(recipe.added_tokens))
        findings.keep(verified)
    return encoder


_WORTH_LOADING = 2
"""Characters, for each byte of a tokenizer.json that an earlier run found to be encoded right, that are encoded before
the reference is loaded for the running check. They take about half as long as loading it."""
