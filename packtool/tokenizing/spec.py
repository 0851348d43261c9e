"""A tokenizer.json as far as packtool looks into it."""

from __future__ import annotations

from typing import Any

import msgspec

_BULKY = {"merges", "vocab"}


class _Entries(msgspec.Struct):
    model: dict[str, msgspec.Raw]


def parse(data: bytes, *, vocabulary: bool = True) -> dict[str, Any]:
    """The entries of a tokenizer.json, without the model's merges: half of the file, and nobody asks for them.

    Args:
        data: the tokenizer.json.
        vocabulary: keep the model's vocabulary.

    Raises:
        msgspec.MsgspecError, UnicodeDecodeError: not JSON, or without a model.

    >>> parse(b'{"model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}, "normalizer": null}', vocabulary=False)
    {'normalizer': None, 'model': {'type': 'BPE'}}
    """
    entries = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
    spec = {name: msgspec.json.decode(raw) for name, raw in entries.items() if name != "model"}
    model = msgspec.json.decode(data, type=_Entries).model
    left_out = _BULKY - ({"vocab"} if vocabulary else set())
    spec["model"] = {name: msgspec.json.decode(raw) for name, raw in model.items() if name not in left_out}
    return spec
