"""A tokenizer.json as far as packtool looks into it."""

from __future__ import annotations

from typing import Any

import msgspec


def parse(data: bytes) -> dict[str, Any]:
    """The entries of a tokenizer.json, without the model's merges: half of the file, and nobody asks for them.

    Args:
        data: the tokenizer.json.

    Raises:
        msgspec.MsgspecError, UnicodeDecodeError: not JSON, or without a model.

    >>> parse(b'{"model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}, "normalizer": null}')
    {'model': {'type': 'BPE', 'vocab': {'a': 0}}, 'normalizer': None}
    """
    entries = msgspec.json.decode(data, type=_Entries)
    model = {name: msgspec.json.decode(raw) for name, raw in entries.model.items() if name != "merges"}
    others = {name: getattr(entries, name) for name in entries.__struct_fields__ if name != "model"}
    return {"model": model, **{name: value for name, value in others.items() if value is not msgspec.UNSET}}


class _Entries(msgspec.Struct):
    model: dict[str, msgspec.Raw]
    added_tokens: Any = msgspec.UNSET
    normalizer: Any = msgspec.UNSET
    pre_tokenizer: Any = msgspec.UNSET
    truncation: Any = msgspec.UNSET
    padding: Any = msgspec.UNSET
