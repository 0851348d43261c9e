"""Added tokens that only other files than the tokenizer.json name, as Transformers reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from packtool.text.encoding.encoders import reference_tokenizer

ADDED_TOKENS = "added_tokens.json"
"""Ids of added tokens, by text: in older files, which have no `added_tokens_decoder`."""
_NAMED = ("bos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
_LISTED = ("additional_special_tokens", "extra_special_tokens")
_FLAGS = ("single_word", "lstrip", "rstrip", "normalized", "special")


def added_tokens(configs: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """List the added tokens that configuration files name, in the order in which Transformers adds them.

    They are those of `added_tokens_decoder` by id, else those of added_tokens.json; then the special tokens that have
    names, but for EOS, and the lists of others.

    Args:
        configs: tokenizer_config.json, special_tokens_map.json and added_tokens.json, parsed, by name.

    Raises:
        TypeError, ValueError: these are not as Transformers writes them.

    >>> added_tokens({"tokenizer_config.json": {"added_tokens_decoder": {"7": {"content": "<x>", "special": True}}}})
    [{'content': '<x>', 'special': True}]
    """
    config = dict(configs.get("tokenizer_config.json", {}))
    decoder = config.get("added_tokens_decoder")
    if decoder is not None:
        by_id = {int(number): dict(token) for number, token in decoder.items()}
    else:
        config |= configs.get("special_tokens_map.json", {})
        special = {_content(config.get(name)) for name in ("eos_token", *_NAMED)}
        special |= {_content(token) for name in _LISTED for token in _values(config.get(name))}
        by_id = {
            int(number): {"content": text, "normalized": text not in special, "special": text in special}
            for text, number in configs.get(ADDED_TOKENS, {}).items()
        }
    tokens = [token for _, token in sorted(by_id.items())]
    have = {str(token["content"]) for token in tokens}
    named = [config.get(name) for name in _NAMED]
    for value in [*named, *(token for name in _LISTED for token in _values(config.get(name)))]:
        content = _content(value)
        if content is not None and content not in have:
            have.add(content)
            flags = dict(value) if isinstance(value, Mapping) else {"normalized": False}
            tokens.append({**flags, "content": content, "special": True})
    return tokens


def with_added_tokens(data: bytes, wanted: Sequence[Mapping[str, Any]]) -> bytes:
    """Add to a tokenizer.json the tokens that it lacks.

    Each gets the id that `tokenizers` gives it: that of the vocabulary if it is there, else the next one.

    Args:
        data: the tokenizer.json.
        wanted: as `added_tokens` lists them.

    Returns:
        The same bytes where nothing is missing, or where it is not a tokenizer.json.
    """
    try:
        entries = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
        known = msgspec.json.decode(entries.get("added_tokens", msgspec.Raw(b"null")), type=list[_Added] | None) or []
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return data
    there = {token.content for token in known}
    missing = [token for token in wanted if token["content"] and token["content"] not in there]
    if not missing:
        return data
    from tokenizers import AddedToken

    tokenizer = reference_tokenizer(data)
    for token in missing:
        flags = {name: bool(token[name]) for name in _FLAGS if name in token}
        tokenizer.add_tokens([AddedToken(str(token["content"]), **flags)])
    more = [
        {"id": number, "content": token.content, **{name: getattr(token, name) for name in _FLAGS}}
        for number, token in sorted(tokenizer.get_added_tokens_decoder().items())
        if token.content not in there
    ]
    before = msgspec.json.decode(entries.get("added_tokens", msgspec.Raw(b"null"))) or []
    return msgspec.json.encode({**entries, "added_tokens": [*before, *more]})


def moved_tokens(config: Mapping[str, Any], vocab: Mapping[str, int]) -> dict[str, tuple[int, int]]:
    """Find the added tokens that have another id than `added_tokens_decoder` says: text, that id, and theirs.

    >>> moved_tokens({"added_tokens_decoder": {"7": {"content": "<x>"}, "8": {"content": "<y>"}}}, {"<x>": 7, "<y>": 9})
    {'<y>': (8, 9)}
    """
    said = {token["content"]: int(number) for number, token in (config.get("added_tokens_decoder") or {}).items()}
    return {text: (said[text], vocab[text]) for text in said if vocab.get(text, said[text]) != said[text]}


class _Added(msgspec.Struct):
    content: str


def _values(value: Any) -> list[Any]:
    """Return the tokens of a list, or of a table by name."""
    if isinstance(value, Mapping):
        return list(value.values())
    return value if isinstance(value, list) else []


def _content(value: Any) -> str | None:
    value = value.get("content") if isinstance(value, Mapping) else value
    return value if isinstance(value, str) else None
