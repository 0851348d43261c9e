"""Choose the encoder, and say why."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from packtool.errors import UsageError
from packtool.tokenizing import families, fastokens, findings, gigatoken, merges, splintr
from packtool.tokenizing.encoders import Encoder, ReferenceEncoder, unsuitable_error
from packtool.tokenizing.families import Shape
from packtool.tokenizing.load import LoadedTokenizer
from packtool.tokenizing.long_texts import cut_of
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


class EncoderRecipe(msgspec.Struct, frozen=True, kw_only=True):
    """The chosen encoder, why it was chosen, and what a worker needs to load it besides the tokenizer.json.

    Attributes:
        encoder: one of `ENCODERS`, but not ``auto``.
        why: it was chosen.
        shape: of the tokenizer.
        cut: how long texts may be cut (see long_texts.py).
        added_tokens: texts of its added tokens.
        vocab_size: one more than the largest id.
        special_as_text: encode special tokens that occur in a text as plain text.
        applied: the merges that apply, where they were looked for (see merges.py).
        verified: file that tells of an earlier run which found it right (see findings.py); empty to keep and use none.
    """

    encoder: str
    why: str
    shape: Shape
    cut: str
    added_tokens: tuple[str, ...]
    vocab_size: int
    special_as_text: bool
    applied: bytes = b""
    verified: str = ""

    def instead(self, why: str) -> EncoderRecipe:
        """Return the recipe of the reference in place of this encoder."""
        return msgspec.structs.replace(self, encoder="tokenizers", why=why)

    def if_small(self, size: int, tokenizer: int) -> EncoderRecipe:
        """Return the recipe of the reference if so many bytes of input do not pay for loading another encoder, for a
        tokenizer.json of so many bytes; else this one."""
        if self.encoder == "tokenizers" or size > SMALL_INPUT * tokenizer:
            return self
        return self.instead(f"the input is so small that loading {self.encoder} would take longer")


def choose(
    spec: Mapping[str, Any], wanted: str = "auto", *, vocab_size: int = 1 << 31, special_as_text: bool = False
) -> EncoderRecipe:
    """Choose the encoder, and say why, from the parsed tokenizer.json alone; load nothing.

    Args:
        wanted: one of `ENCODERS`.
        vocab_size, special_as_text: see `EncoderRecipe`.

    Raises:
        UsageError: no such encoder, or a fast one asked for where it is not installed or known to be right.
    """
    if wanted not in ENCODERS:
        what, remedy = f"no encoder {wanted!r}", f"choose {', '.join(ENCODERS)}"
        raise UsageError("unknown-encoder", what, remedy=remedy, where="--encoder")
    recipe = partial(
        EncoderRecipe,
        cut=cut_of(spec),
        added_tokens=tuple(token["content"] for token in spec.get("added_tokens") or ()),
        vocab_size=vocab_size,
        special_as_text=special_as_text,
    )
    kind = spec["model"].get("type")
    if wanted == "tokenizers":
        return recipe(encoder=wanted, why="asked for", shape=Shape())
    reasons = []
    for name in [wanted] if wanted != "auto" else [name for name, (kinds, _) in _FAST.items() if kind in kinds]:
        shape = _shape(name, spec)
        if isinstance(shape, Shape):
            why = f"the tokenizer is one that {name} encodes exactly, verified as it runs"
            return recipe(encoder=name, why=why, shape=shape)
        reasons.append(shape)
    if wanted != "auto":
        raise unsuitable_error(reasons[0])
    why = "; ".join(reasons) or f"its model is {kind}, which has no other encoder"
    return recipe(encoder="tokenizers", why=why, shape=Shape())


def installed(encoder: str) -> bool:
    """Return whether an encoder can be imported: some platforms lack one, and splintr comes with an extra."""
    return importlib.util.find_spec(encoder) is not None


def _shape(fast: str, spec: Mapping[str, Any]) -> Shape | str:
    """Return how a fast encoder encodes a tokenizer, or say why it can't be used."""
    if not installed(fast):
        return f"{fast} is not installed"
    (kinds, shape), kind = _FAST[fast], spec["model"].get("type")
    result = shape(spec) if kind in kinds else f"its model is {kind}, not {' or '.join(kinds)}"
    return result if isinstance(result, Shape) else f"{fast} does not support this tokenizer: {result}"


def settle(
    tokenizer: LoadedTokenizer, wanted: str, *, special_as_text: bool, kept: Path | None, size: int = 0
) -> EncoderRecipe:
    """Choose the encoder, unless an earlier run did.

    Args:
        wanted, special_as_text: as of `choose`.
        kept: where earlier runs kept what they found (see findings.py).
        size: bytes of input.

    Raises:
        UsageError: as `choose` does.
    """
    data, vocab_size = tokenizer.info.sha256, tokenizer.info.vocab_size
    asked = findings.finding(kept, "recipe", data, wanted, special_as_text)
    choice = partial(choose, vocab_size=vocab_size, special_as_text=special_as_text)
    made = findings.found(asked, EncoderRecipe, lambda: choice(tokenizer.found.spec, wanted))
    applied = None
    if made.encoder == "gigatoken":
        asked = findings.finding(kept, "merges", data)
        applied = findings.earlier(asked, bytes)
        if applied is None and size > _WORTH_LOOKING * len(tokenizer.data):
            applied = merges.found(tokenizer.data)
            findings.keep(asked, applied)
    verified = findings.finding(kept, "verified", data, made.encoder, special_as_text, bool(applied))
    return msgspec.structs.replace(made, applied=applied or b"", verified=str(verified or ""))


def load_encoder(recipe: EncoderRecipe, data: bytes) -> Verified:
    """Load an encoder for a tokenizer.json; the fast one is probed first, unless an earlier run found it right.

    Raises:
        EncoderUnsuitableError: the fast encoder does not support the tokenizer after all.
        EncoderMismatchError: it differs from the reference on a probe.
    """
    reference = ReferenceEncoder(data, special_as_text=recipe.special_as_text)
    if recipe.encoder == "tokenizers":
        reference.load()  # before others are forked from this process, which then share it
        return Verified(reference, reference, cut=recipe.cut, vocab_size=recipe.vocab_size)
    as_text, size = recipe.special_as_text, recipe.vocab_size
    fast: Encoder
    if recipe.encoder == "splintr":
        fast = splintr.SplintrEncoder(data, special_as_text=as_text)
    elif recipe.encoder == "fastokens":
        fast = fastokens.FastokensEncoder(data, size, special_as_text=as_text)
    else:
        spell, shape, applied = reference.spell, recipe.shape, recipe.applied
        fast = gigatoken.GigatokenEncoder(data, shape, size, spell=spell, applied=applied, special_as_text=as_text)
    verified = Path(recipe.verified) if recipe.verified else None
    known = verified is not None and verified.is_file()
    encoder = Verified(
        fast,
        reference,
        cut=recipe.cut,
        vocab_size=size,
        newer=recipe.shape.newer,
        verified=verified,
        patience=_WORTH_LOADING * len(data) if known else 0,
    )
    if not known:
        encoder.require(probes(recipe.added_tokens))
        findings.keep(verified)
    return encoder


_WORTH_LOOKING = 64
"""Bytes of input, for each byte of a tokenizer.json, from which on the merges that apply are looked for: that takes a
twentieth of such a run, once, and each later one is loaded sooner."""
_WORTH_LOADING = 2
"""Characters, for each byte of a tokenizer.json that an earlier run found to be encoded right, that are encoded before
the reference is loaded for the running check. They take about half as long as loading it."""
