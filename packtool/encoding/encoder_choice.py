"""Choose the encoder, and say why."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from packtool.encoding import families, fastokens, findings, gigatoken, splintr
from packtool.encoding.encoders import Encode, EncoderRecipe, ReferenceEncoder, unsuitable_error
from packtool.encoding.families import Shape
from packtool.encoding.load import LoadedTokenizer
from packtool.encoding.long_texts import cut_of
from packtool.encoding.verify import Verified, probes
from packtool.errors import UsageError


class Fast(NamedTuple):
    """A fast encoder.

    Attributes:
        models: that it encodes.
        shape: tells how it encodes a parsed tokenizer.json, or why it does not.
        prepared: returns the tokenizer.json that it is loaded from.
        load: loads it from that.
    """

    models: tuple[str, ...]
    shape: Callable[[Mapping[str, Any]], Shape | str]
    prepared: Callable[[bytes, EncoderRecipe], bytes]
    load: Callable[[bytes, EncoderRecipe, ReferenceEncoder], Encode]


FAST = {
    "gigatoken": Fast(("BPE",), families.shape, gigatoken.prepared, gigatoken.GigatokenEncoder),
    "fastokens": Fast(("BPE",), fastokens.shape, fastokens.prepared, fastokens.load),
    "splintr": Fast(("Unigram", "WordPiece"), splintr.shape, splintr.prepared, splintr.load),
}
"""The best encoder first."""
ENCODERS = ("auto", "tokenizers", *FAST)


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
    fitting = [name for name, fast in FAST.items() if kind in fast.models]
    reasons = []
    for name in {"auto": fitting, "tokenizers": []}.get(wanted, [wanted]):
        fast = FAST[name]
        shape = fast.shape(spec) if kind in fast.models else f"its model is {kind}, not {' or '.join(fast.models)}"
        if not installed(name):
            reasons.append(f"{name} is not installed")
        elif isinstance(shape, str):
            reasons.append(f"{name} does not support this tokenizer: {shape}")
        else:
            why = f"the tokenizer is one that {name} encodes exactly, verified as it runs"
            return recipe(encoder=name, why=why, shape=shape)
    if wanted in FAST:
        raise unsuitable_error(reasons[0])
    why = "; ".join(reasons) or f"its model is {kind}, which has no other encoder"
    return recipe(encoder="tokenizers", why="asked for" if wanted == "tokenizers" else why, shape=Shape())


def installed(encoder: str) -> bool:
    """Return whether an encoder can be imported: some platforms lack one, and splintr comes with an extra."""
    return importlib.util.find_spec(encoder) is not None


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
    lean = made.encoder == "gigatoken" and size > _WORTH_LOOKING * len(tokenizer.found.data)
    prepared = findings.finding(kept, "prepared", data, made.encoder, special_as_text)
    return msgspec.structs.replace(made, lean=lean, kept=prepared)


class _Kept(msgspec.Struct, frozen=True):
    """What an encoder was loaded from that was found right, and whether it lacks merges that never apply."""

    prepared: bytes
    lean: bool


def load_encoder(recipe: EncoderRecipe, read: Callable[[], bytes]) -> Verified:
    """Load an encoder for a tokenizer.json; the fast one is probed first, unless an earlier run found it right.

    Args:
        read: returns the tokenizer.json, where it is needed.

    Raises:
        EncoderUnsuitableError: the fast encoder does not support the tokenizer after all.
        EncoderMismatchError: it differs from the reference on a probe.
    """
    reference = ReferenceEncoder(read, special_as_text=recipe.special_as_text)
    if recipe.encoder == "tokenizers":
        reference.load()  # before others are forked from this process, which then share it
        return Verified(reference.encode, reference, recipe)
    fast, kept = FAST[recipe.encoder], findings.earlier(recipe.kept, _Kept)
    known = kept is not None and kept.lean >= recipe.lean
    if kept is None or not known:
        kept = _Kept(fast.prepared(read(), recipe), recipe.lean)
    patience = _WORTH_LOADING * len(kept.prepared) if known else 0
    encoder = Verified(fast.load(kept.prepared, recipe, reference), reference, recipe, patience=patience)
    if not known:
        encoder.require(probes(recipe.added_tokens))
        findings.keep(recipe.kept, kept)
    return encoder


_WORTH_LOOKING = 64
"""Bytes of input, for each byte of a tokenizer.json, from which on the merges that apply are looked for: that takes a
twentieth of such a run, once, and each later one is loaded sooner."""
_WORTH_LOADING = 4
"""Characters, for each byte of what an encoder is loaded from that an earlier run found right, that are encoded before
the reference is loaded for the running check. They take about half as long as loading it."""
