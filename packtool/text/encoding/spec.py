"""The parts of a tokenizer.json that packtool looks into."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from packtool.support.decoding import from_json


def _right(pair: Any) -> str:
    """Return the right part of a merge, which is written as one text with a space in it, or as two."""
    if isinstance(pair, str):
        return pair.partition(" ")[2]
    return str(pair[1])


def parse(data: bytes) -> dict[str, Any]:
    """Parse a tokenizer.json without the model's merges: half of the file, and nobody asks for them.

    Args:
        data: the tokenizer.json.

    Raises:
        ValueError: not JSON, without a model, or with an entry of another type than it must have.

    >>> parse(b'{"model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}, "normalizer": null}')
    {'model': {'type': 'BPE', 'vocab': {'a': 0}}, 'normalizer': None}
    """
    raw_model, others = _entries(data)
    merges = raw_model.pop("merges", None)
    model: dict[str, Any] = {}
    for name, raw in raw_model.items():
        model[name] = from_json(raw, _Vocabulary if name == "vocab" else Any)
    prefix = model.get("continuing_subword_prefix")
    if merges is not None and isinstance(prefix, str) and prefix:
        # `tokenizers` cuts as many bytes off the right part of each merge without a look, and ends the process where
        # that is in the middle of a character.
        parts = map(_right, from_json(merges, _Merges))
        if not all(part.startswith(prefix) for part in parts):
            raise ValueError("merges without the prefix of continuing subwords that it has")
    for name, type_ in (("normalizer", _Step), ("pre_tokenizer", _Step), ("added_tokens", list[_AddedToken])):
        from_json(others.get(name, _NULL), type_ | None)
    return {"model": model, **{name: from_json(raw, Any) for name, raw in others.items()}}


def repeated_merge(data: bytes) -> str | None:
    """Return a merge that a BPE lists twice, for which libraries take different places; None if all merges differ.

    >>> repeated_merge(b'{"model": {"merges": ["a b", "b c", "a b"]}}'), repeated_merge(b'{"model": {}}')
    ('a b', None)
    """
    model, _ = _entries(data)
    try:
        merges = from_json(model.get("merges", _NULL), _Merges | None) or []
    except ValueError:  # `tokenizers` will say what is wrong with them
        return None
    if len(set(merges)) == len(merges):
        return None
    merge, _ = Counter(merges).most_common(1)[0]
    return merge if isinstance(merge, str) else " ".join(merge)


def for_encoding(data: bytes) -> dict[str, Any]:
    """Return the entries of a tokenizer.json that determine a document's ids, each verbatim.

    Whole documents are encoded, always alike, and packtool itself adds what begins and ends them. So there is no
    truncation, padding or BPE dropout, and no template.

    Returns:
        Raw JSON by name; the model's entries, too, of which there are thousands of times more than of all others, so
        that they are looked through once.
    """
    model, others = _entries(data)
    model.pop("dropout", None)
    return {**others, "model": model, **dict.fromkeys(("truncation", "padding", "post_processor"))}


def _entries(data: bytes) -> tuple[dict[str, msgspec.Raw], dict[str, msgspec.Raw]]:
    """Return the entries of the model, with its type, and the others that are there, as they are written."""
    entries = from_json(data, _Entries)
    model = entries.model
    if "type" not in model:  # what `tokenizers` takes an older file for
        if "vocab" in model and bytes(memoryview(model["vocab"])[:1]) == b"[":
            kind = "Unigram"
        elif "merges" in model:
            kind = "BPE"
        else:
            kind = "WordPiece" if "max_input_chars_per_word" in model else "WordLevel"
        model = {"type": msgspec.Raw(msgspec.json.encode(kind)), **model}
    others = {name: getattr(entries, name) for name in entries.__struct_fields__[1:]}
    return model, {name: raw for name, raw in others.items() if raw != _ABSENT}


def not_applied(spec: Mapping[str, Any]) -> list[str]:
    """List the settings of a tokenizer.json that are not applied, since they would alter or cut what is stored.

    >>> not_applied({"model": {"dropout": 0.1}, "truncation": {"max_length": 128}})
    ['truncation to 128 tokens', 'BPE dropout']
    """
    steps = []
    cut = spec.get("truncation")
    if isinstance(cut, dict):
        steps.append(f"truncation to {cut.get('max_length')} tokens")
    if spec["model"].get("dropout"):
        steps.append("BPE dropout")
    return steps


_ABSENT, _NULL = msgspec.Raw(), msgspec.Raw(b"null")


class _Entries(msgspec.Struct):
    model: dict[str, msgspec.Raw]
    version: msgspec.Raw = _ABSENT
    added_tokens: msgspec.Raw = _ABSENT
    normalizer: msgspec.Raw = _ABSENT
    pre_tokenizer: msgspec.Raw = _ABSENT
    decoder: msgspec.Raw = _ABSENT
    truncation: msgspec.Raw = _ABSENT
    padding: msgspec.Raw = _ABSENT


class _Step(msgspec.Struct):
    """The types that packtool requires of a normalizer or pre-tokenizer; the rest is kept verbatim."""

    type: str
    normalizers: list[_Step] = []
    pretokenizers: list[_Step] = []
    pattern: dict[str, Any] | None = None


class _AddedToken(msgspec.Struct):
    content: str


_Id = Annotated[int, Meta(ge=0, lt=1 << 32)]
_Vocabulary = dict[str, _Id] | list[tuple[str, float]] | None
_Merges = list[str | tuple[str, str]]
