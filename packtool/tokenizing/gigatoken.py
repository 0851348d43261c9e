"""The fast encoder, and the tokenizer shapes for which it is known to give the ids of `tokenizers`.

On other shapes gigatoken can be silently wrong, so nothing reaches it that is not on this list; and what reaches it is
verified as it runs (verify.py). Its own file readers are never used.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from packtool.plan import I64
from packtool.tokenizing.encoders import U32, EncoderMismatchError, EncoderUnsuitableError


def installed() -> bool:
    """Whether gigatoken can be imported here; there are platforms without it."""
    return importlib.util.find_spec("gigatoken") is not None


def unsupported(spec: Mapping[str, Any]) -> str | None:
    """Why a tokenizer.json is not on the list, or None if it is.

    Args:
        spec: the parsed tokenizer.json.

    >>> unsupported({"model": {"type": "Unigram"}})
    'its model is Unigram, not BPE'
    """
    return (
        _model(spec["model"])
        or _normalizer(spec.get("normalizer"))
        or _pre_tokenizer(spec.get("pre_tokenizer"))
        or _around(spec)
    )


def _model(model: Mapping[str, Any]) -> str | None:
    if model.get("type") != "BPE":
        return f"its model is {model.get('type')}, not BPE"
    for option, meaning in (
        ("dropout", "BPE dropout"),
        ("unk_token", "an unknown token"),
        ("continuing_subword_prefix", "a prefix on continuing subwords"),
        ("end_of_word_suffix", "a suffix on words"),
        ("byte_fallback", "byte fallback"),
    ):
        if model.get(option):
            return f"it has {meaning}"
    return None


def _normalizer(normalizer: Mapping[str, Any] | None) -> str | None:
    if normalizer is None or normalizer.get("type") == "NFC":
        return None
    return f"its normalizer is {normalizer.get('type')}, not NFC or none"


def _pre_tokenizer(pre_tokenizer: Mapping[str, Any] | None) -> str | None:
    if pre_tokenizer is None:
        return "it has no pre-tokenizer"
    steps = pre_tokenizer.get("pretokenizers", [pre_tokenizer])
    kinds = [step["type"] for step in steps]
    own_pattern = steps[-1].get("use_regex", True) if steps else False
    if kinds == ["ByteLevel"] and pre_tokenizer["type"] == "ByteLevel":
        reason = None if own_pattern else "its pre-tokenizer is ByteLevel without its pattern"
    elif kinds == ["Split", "ByteLevel"]:
        split = steps[0]
        isolates = split.get("behavior") == "Isolated" and not split.get("invert") and "Regex" in split["pattern"]
        reason = None if isolates and not own_pattern else "its pre-tokenizer does more than isolate one pattern"
    else:
        reason = f"its pre-tokenizer is {' + '.join(kinds)}"
    if reason is None and steps[-1].get("add_prefix_space"):
        reason = "it adds a space before texts"
    return reason


def _around(spec: Mapping[str, Any]) -> str | None:
    if spec.get("truncation"):
        return "it truncates"
    if spec.get("padding"):
        return "it pads"
    for token in spec.get("added_tokens") or ():
        if token.get("single_word"):
            return f"its added token {token['content']!r} stands for single words only"
        if token.get("normalized") and spec.get("normalizer"):
            return f"its added token {token['content']!r} is looked for in normalized text"
    return None


SEPARATOR = "\U0010fffepacktool\U0010fffe"
"""Stands between the texts of a batch, as a special token of its own, which no pre-token crosses."""


class GigatokenEncoder:
    """gigatoken, on one thread, fed with our batches.

    A batch is encoded as one text with separators: an array comes back, without the import of a whole library for
    nested arrays that gigatoken's own batches need.

    Args:
        data: a tokenizer.json on the list.
        vocab_size: one more than its largest id.
        special_as_text: encode special tokens that occur in a text as plain text.

    Raises:
        EncoderUnsuitableError: gigatoken does not support it after all.
    """

    name = "gigatoken"
    truncated = 0

    def __init__(self, data: bytes, vocab_size: int, *, special_as_text: bool = False) -> None:
        entries = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
        tokens = msgspec.json.decode(entries["added_tokens"]) if "added_tokens" in entries else []
        tokens = [token for token in tokens or () if not (special_as_text and token.get("special"))]
        self._plain = entries, tokens
        self._separator = vocab_size
        flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
        self._backend = _load(entries, [*tokens, {"id": vocab_size, "content": SEPARATOR, **flags}])

    def encode(self, texts: Sequence[str]) -> tuple[U32, I64]:
        """See `Encoder.encode`."""
        if not texts:
            return np.empty(0, np.uint32), np.empty(0, np.int64)
        joined = SEPARATOR.encode().join([text.encode() for text in texts])
        ids = np.asarray(_guarded(self._backend.encode, joined))
        ends = np.flatnonzero(ids == self._separator)
        if len(ends) != len(texts) - 1:
            return self._encode_singly(texts)
        lengths = np.diff(ends, prepend=-1, append=len(ids)) - 1
        return ids[ids != self._separator], lengths

    def _encode_singly(self, texts: Sequence[str]) -> tuple[U32, I64]:
        """For the one batch in the world with our separator in a text."""
        backend = _load(*self._plain)
        ids = [np.asarray(_guarded(backend.encode, text.encode())) for text in texts]
        return np.concatenate(ids), np.array([len(each) for each in ids], np.int64)


def _load(entries: dict[str, msgspec.Raw], tokens: list[dict[str, Any]]) -> Any:
    """gigatoken for a tokenizer.json with these added tokens; all else is copied, not parsed."""
    from gigatoken.gigatoken_rs import BPETokenizer, load_hf_json

    changed = {**entries, "added_tokens": msgspec.Raw(msgspec.json.encode(tokens))}
    try:
        backend = _guarded(load_hf_json, msgspec.json.encode(changed))
    except EncoderMismatchError as error:
        raise _unsuitable(error.what) from None
    if not isinstance(backend, BPETokenizer):
        raise _unsuitable("gigatoken takes this tokenizer for one of another kind")
    return backend


def _guarded(function: Any, *arguments: Any, **options: Any) -> Any:
    try:
        return function(*arguments, **options)
    except (KeyboardInterrupt, SystemExit, MemoryError):
        raise
    except BaseException as error:  # a panic in Rust arrives as a BaseException
        raise _failure(str(error).splitlines()[0] if str(error) else type(error).__name__) from None


def _failure(reason: str) -> EncoderMismatchError:
    what = f"gigatoken failed ({reason})"
    return EncoderMismatchError("encoder-mismatch", what, remedy="give --encoder tokenizers", where="--encoder")


def _unsuitable(what: str) -> EncoderUnsuitableError:
    remedy = "give --encoder auto or tokenizers"
    return EncoderUnsuitableError("encoder-unsuitable", what, remedy=remedy, where="--encoder")
