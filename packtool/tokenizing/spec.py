"""A tokenizer.json as far as packtool looks into it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta


def parse(data: bytes) -> dict[str, Any]:
    """Parse a tokenizer.json without the model's merges: half of the file, and nobody asks for them.

    Args:
        data: the tokenizer.json.

    Raises:
        msgspec.MsgspecError, UnicodeDecodeError: not JSON, without a model, or with an entry of another type than it
            must have.

    >>> parse(b'{"model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}, "normalizer": null}')
    {'model': {'type': 'BPE', 'vocab': {'a': 0}}, 'normalizer': None}
    """
    entries = msgspec.json.decode(data, type=_Entries)
    model = {
        name: msgspec.json.decode(raw, type=_Vocabulary if name == "vocab" else Any)
        for name, raw in entries.model.items()
        if name != "merges"
    }
    model.setdefault("type", _type(entries.model))
    others = {name: getattr(entries, name) for name in entries.__struct_fields__ if name != "model"}
    for name, type_ in (("normalizer", _Step), ("pre_tokenizer", _Step), ("added_tokens", list[_AddedToken])):
        msgspec.convert(None if others[name] is msgspec.UNSET else others[name], type_ | None)
    return {"model": model, **{name: value for name, value in others.items() if value is not msgspec.UNSET}}


def _type(model: Mapping[str, msgspec.Raw]) -> str:
    """Return the type that `tokenizers` takes a model for that names none, as those of older files do."""
    if "vocab" in model and bytes(memoryview(model["vocab"])[:1]) == b"[":
        return "Unigram"
    if "merges" in model:
        return "BPE"
    return "WordPiece" if "max_input_chars_per_word" in model else "WordLevel"


def for_encoding(data: bytes) -> dict[str, Any]:
    """Return the entries of a tokenizer.json that decide which ids a document has, each as it is written.

    Whole documents are encoded, always alike, and packtool itself adds what begins and ends them. So there is no
    truncation, padding or BPE dropout, and no template.

    Returns:
        Raw JSON by name; the model's entries, too, of which there are thousands of times more than of all others, so
        that they are looked through once.
    """
    entries = msgspec.json.decode(data, type=_ForEncoding)
    entries.model.pop("dropout", None)
    entries.model = {"type": msgspec.Raw(msgspec.json.encode(_type(entries.model)))} | entries.model
    there = {name: value for name, value in msgspec.structs.asdict(entries).items() if value != _ABSENT}
    return there | dict.fromkeys(("truncation", "padding", "post_processor"))


def not_applied(spec: Mapping[str, Any]) -> list[str]:
    """List what a tokenizer.json asks for that would change or cut what is stored, and is not done.

    >>> not_applied({"model": {"dropout": 0.1}, "truncation": {"max_length": 128}})
    ['truncation to 128 tokens', 'BPE dropout']
    """
    cut = spec.get("truncation")
    found = [f"truncation to {cut.get('max_length')} tokens"] if isinstance(cut, dict) else []
    return found + ["BPE dropout"] * bool(spec["model"].get("dropout"))


def merges_fit(data: bytes, spec: Mapping[str, Any]) -> bool:
    """Return whether the right part of each merge has the prefix of continuing subwords, if there is one.

    `tokenizers` cuts as many bytes off without a look, and ends the process where that is in the middle of a character.

    Args:
        data: the tokenizer.json.
        spec: the same, parsed.

    Raises:
        msgspec.MsgspecError: the merges are not what they must be.
    """
    prefix = spec["model"].get("continuing_subword_prefix")
    if not isinstance(prefix, str) or not prefix:  # none, or one that `tokenizers` refuses
        return True
    merges = msgspec.json.decode(data, type=_WithMerges).model.merges
    parts = (merge.partition(" ")[2] if isinstance(merge, str) else merge[1] for merge in merges)
    return all(part.startswith(prefix) for part in parts)


class _Merges(msgspec.Struct):
    merges: list[str | tuple[str, str]] = []


class _WithMerges(msgspec.Struct):
    model: _Merges


class _Entries(msgspec.Struct):
    model: dict[str, msgspec.Raw]
    added_tokens: Any = msgspec.UNSET
    normalizer: Any = msgspec.UNSET
    pre_tokenizer: Any = msgspec.UNSET
    truncation: Any = msgspec.UNSET
    padding: Any = msgspec.UNSET


_ABSENT = msgspec.Raw()


class _ForEncoding(msgspec.Struct):
    model: dict[str, msgspec.Raw]
    version: msgspec.Raw = _ABSENT
    added_tokens: msgspec.Raw = _ABSENT
    normalizer: msgspec.Raw = _ABSENT
    pre_tokenizer: msgspec.Raw = _ABSENT
    decoder: msgspec.Raw = _ABSENT


class _Step(msgspec.Struct):
    """The types that a normalizer or pre-tokenizer must have where packtool looks; what they hold is kept as it is."""

    type: str
    normalizers: list[_Step] = []
    pretokenizers: list[_Step] = []
    pattern: dict[str, Any] | None = None


class _AddedToken(msgspec.Struct):
    content: str


_Id = Annotated[int, Meta(ge=0, lt=1 << 32)]
_Vocabulary = dict[str, _Id] | list[tuple[str, float]] | None
