"""Which encoder runs, and why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from packtool.errors import UsageError
from packtool.tokenizing import gigatoken
from packtool.tokenizing.encoders import EncoderUnsuitableError, ReferenceEncoder
from packtool.tokenizing.pieces import can_cut
from packtool.tokenizing.spec import parse
from packtool.tokenizing.verify import Verified, probes

ENCODERS = ("auto", "tokenizers", "gigatoken")


def choose(spec: Mapping[str, Any], wanted: str = "auto") -> tuple[str, str]:
    """The encoder to use, and why, from the tokenizer.json alone; loads nothing.

    Args:
        spec: the parsed tokenizer.json.
        wanted: auto, tokenizers or gigatoken.

    Raises:
        UsageError: no such encoder, or gigatoken asked for where it is not installed or known to be right.
    """
    if wanted not in ENCODERS:
        raise UsageError(
            "unknown-encoder", f"no encoder {wanted!r}", remedy=f"choose {', '.join(ENCODERS)}", where="--encoder"
        )
    if wanted == "tokenizers":
        return wanted, "asked for"
    if not gigatoken.installed():
        why = "gigatoken is not installed"
    else:
        reason = gigatoken.unsupported(spec)
        if reason is None:
            return "gigatoken", "the tokenizer is one that gigatoken encodes exactly, verified as it runs"
        why = f"gigatoken does not support this tokenizer: {reason}"
    if wanted == "gigatoken":
        remedy = "give --encoder auto or tokenizers"
        raise EncoderUnsuitableError("encoder-unsuitable", why, remedy=remedy, where="--encoder")
    return "tokenizers", why


def build(data: bytes, name: str, *, special_as_text: bool = False) -> Verified:
    """Load an encoder; the fast one is probed first.

    Args:
        data: the tokenizer.json.
        name: as `choose` returned it.
        special_as_text: encode special tokens that occur in a text as plain text.

    Raises:
        EncoderUnsuitableError: the fast encoder does not support the tokenizer after all.
        EncoderMismatchError: it differs from the reference on a probe.
    """
    spec = parse(data, vocabulary=False)
    reference = ReferenceEncoder(data, special_as_text=special_as_text)
    if name == "tokenizers":
        return Verified(reference, None, cuttable=can_cut(spec))
    fast = gigatoken.GigatokenEncoder(data, special_as_text=special_as_text)
    encoder = Verified(fast, reference, cuttable=can_cut(spec), normalizes=spec.get("normalizer") is not None)
    encoder.require(probes(spec))
    return encoder
