"""Recognise a tokenizer.json that two libraries may read in two ways: no fast encoder is given it.

No trainer writes such files. They are made by hand, or by conversions that drop an entry and leave the ids.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from packtool.text.encoding.spec import repeated_merge

_GAPS = 1 << 16  # ids without an entry that any file may have: libraries allocate tables up to the largest id


def odd(spec: Mapping[str, Any], vocab: Mapping[str, int], data: bytes) -> str:
    """Describe what is odd about a tokenizer.json; empty if nothing is.

    Args:
        spec: parsed.
        vocab: every token's id, as `tokenizers` gives it.
        data: the file.

    >>> odd({"model": {}, "added_tokens": [{"content": "<x>", "id": 7}]}, {"a": 0, "<x>": 1}, b"{}")
    "its added token '<x>' has the id 7 in the file, and 1 in use"
    """
    added = spec.get("added_tokens") or ()
    contents = [token["content"] for token in added]
    moved = [token for token in added if token.get("id") != vocab.get(token["content"])]
    largest = max(vocab.values(), default=0)
    if largest > 4 * len(vocab) + _GAPS:
        return f"its largest id is {largest:,}, of {len(vocab):,} entries"
    if len(set(vocab.values())) < len(vocab):
        return "two of its entries have one id"
    if "" in contents or len(set(contents)) < len(contents):
        return "an added token is empty, or given twice"
    if moved:
        text, number = moved[0]["content"], moved[0].get("id")
        return f"its added token {text!r} has the id {number} in the file, and {vocab.get(text)} in use"
    merge = repeated_merge(data)
    return "" if merge is None else f"its merge {merge!r} is given twice"
