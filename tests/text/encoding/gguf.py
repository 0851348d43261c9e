"""Tokenizer files made of the vocabularies in GGUF files, which packages ship to test llama.cpp with."""

from __future__ import annotations

import struct
from typing import Any

from tests.text.encoding import shapes

_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_TEXT, _LIST = 8, 9
_CONTROL, _ADDED = 3, 4


def made(data: bytes, pre_tokenizer: dict[str, Any]) -> dict[str, Any]:
    """A tokenizer.json of a byte-level BPE with that vocabulary and those merges."""
    found = _metadata(data)
    texts, kinds = found["tokenizer.ggml.tokens"], found["tokenizer.ggml.token_type"]
    added = [
        shapes.token(text, number, special=kind == _CONTROL)
        for number, (text, kind) in enumerate(zip(texts, kinds, strict=True))
        if kind in (_CONTROL, _ADDED)
    ]
    vocab = {text: number for number, text in enumerate(texts)}
    model = {"type": "BPE", "vocab": vocab, "merges": found["tokenizer.ggml.merges"]}
    return shapes.spec(added_tokens=added, pre_tokenizer=pre_tokenizer, model=model)


def _metadata(data: bytes) -> dict[str, Any]:
    at = 24  # magic, version and number of tensors, number of entries

    def number(kind: str) -> Any:
        nonlocal at
        (value,) = struct.unpack_from(f"<{kind}", data, at)
        at += struct.calcsize(kind)
        return value

    def value(kind: int) -> Any:
        nonlocal at
        if kind == _TEXT:
            size = number("Q")
            at += size
            return data[at - size : at].decode()
        if kind == _LIST:
            kind, size = number("I"), number("Q")
            return [value(kind) for _ in range(size)]
        return number(_NUMBERS[kind])

    (entries,) = struct.unpack_from("<Q", data, 16)
    return {value(_TEXT): value(number("I")) for _ in range(entries)}
