"""Added tokens that only other files than the tokenizer.json name, as Transformers reads them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec

from packtool.support.decoding import from_json, from_plain
from packtool.text.conversations.chat import text_of_token
from packtool.text.encoding.encoders import reference_tokenizer

ADDED_TOKENS = "added_tokens.json"
"""Ids of added tokens, by text: in older files, which have no `added_tokens_decoder`."""
_NAMED = ("bos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
_LISTED = ("additional_special_tokens", "extra_special_tokens")
_FLAGS = ("single_word", "lstrip", "rstrip", "normalized", "special")


_NULL = msgspec.Raw(b"null")


def added_tokens(configs: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """List the added tokens that configuration files name, in the order in which Transformers adds them.

    They are the tokens of `added_tokens_decoder`, by id, or without it of added_tokens.json; then the special tokens
    with names of their own, except EOS, and the lists of further special tokens.

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
        by_id = _of_older_files(config, configs.get(ADDED_TOKENS, {}))
    tokens = [by_id[number] for number in sorted(by_id)]
    have = {str(token["content"]) for token in tokens}
    for value in [*map(config.get, _NAMED), *_listed(config)]:
        content = text_of_token(value)
        if content is None or content in have:
            continue
        have.add(content)
        flags = {"normalized": False}
        if isinstance(value, Mapping):
            flags = dict(value)
        tokens.append({**flags, "content": content, "special": True})
    return tokens


def _of_older_files(config: Mapping[str, Any], ids: Mapping[str, Any]) -> dict[int, dict[str, Any]]:
    """Return the tokens of added_tokens.json by id: special tokens, which the other files name, are not normalized."""
    special = {text_of_token(config.get(name)) for name in ("eos_token", *_NAMED)}
    special |= set(map(text_of_token, _listed(config)))
    tokens = {}
    for text, number in ids.items():
        tokens[int(number)] = {"content": text, "normalized": text not in special, "special": text in special}
    return tokens


def _listed(config: Mapping[str, Any]) -> list[Any]:
    """Return the tokens in the lists of further special tokens."""
    tokens = []
    for name in _LISTED:
        tokens += _values(config.get(name))
    return tokens


def with_added_tokens(data: bytes, wanted: Sequence[Mapping[str, Any]], flagged: Collection[str] = ()) -> bytes:
    """Add to a tokenizer.json the wanted tokens that it lacks, and set the wanted flags of the tokens that it has.

    A token gets the id that `tokenizers` gives it: its id in the vocabulary if it is there, otherwise the next one.

    Args:
        data: the tokenizer.json.
        wanted: as `added_tokens` lists them.
        flagged: texts of wanted tokens whose flags replace the file's; a special token of the file stays special.

    Returns:
        The new tokenizer.json; the same bytes if nothing changes, or if they are not a tokenizer.json.
    """
    try:
        entries, before = written_entries(data)
        known = {token.content: token for token in from_plain(before, list[_Added])}
    except ValueError:
        return data
    tokens = [_Added(str(token["content"]), **_flags(token)) for token in wanted if token["content"]]
    missing = [token for token in tokens if token.content not in known]
    other: dict[str, dict[str, Any]] = {}
    for token in tokens:
        there = known.get(token.content)
        if there is not None and token.content in flagged:
            flags = msgspec.structs.asdict(token) | {"special": token.special or there.special}
            if flags != msgspec.structs.asdict(there):
                other[token.content] = flags
    if not missing and not other:
        return data
    for entry in before:  # with its id, and whatever else the file says of it
        entry.update(other.get(entry["content"], {}))
    return msgspec.json.encode({**entries, "added_tokens": [*before, *_numbered(data, missing)]})


def with_special(data: bytes, texts: Collection[str]) -> bytes:
    """Return a tokenizer.json whose added tokens of these texts are special: it encodes them as plain text if asked to.

    >>> with_special(b'{"added_tokens": [{"id": 7, "content": "<x>", "special": false}]}', {"<x>"})
    b'{"added_tokens":[{"id":7,"content":"<x>","special":true}]}'
    """
    entries, tokens = written_entries(data)
    ordinary = [token for token in tokens if token["content"] in texts and not token.get("special")]
    if not ordinary:
        return data
    for token in ordinary:
        token["special"] = True
    return msgspec.json.encode({**entries, "added_tokens": tokens})


def written_entries(data: bytes) -> tuple[dict[str, msgspec.Raw], list[dict[str, Any]]]:
    """Return the entries of a tokenizer.json as they are written, and its added tokens, parsed.

    Raises:
        ValueError: not a tokenizer.json.
    """
    entries = from_json(data, dict[str, msgspec.Raw])
    return entries, from_json(entries.get("added_tokens", _NULL), list[dict[str, Any]] | None) or []


def _numbered(data: bytes, missing: Sequence[_Added]) -> list[dict[str, Any]]:
    """Return tokens that a tokenizer.json lacks as it writes them, with the ids that `tokenizers` gives them."""
    if not missing:
        return []
    from tokenizers import AddedToken

    tokenizer = reference_tokenizer(data)
    for token in missing:
        tokenizer.add_tokens([AddedToken(**msgspec.structs.asdict(token))])
    contents = {token.content for token in missing}
    written = []
    for number, added in sorted(tokenizer.get_added_tokens_decoder().items()):
        if added.content in contents:
            flags = {name: getattr(added, name) for name in _FLAGS}
            written.append({"id": number, "content": added.content, **flags})
    return written


def _flags(token: Mapping[str, Any]) -> dict[str, bool]:
    """Return the flags of a token, with the defaults that `tokenizers` has: special tokens are not normalized."""
    flags = {name: bool(token.get(name, False)) for name in _FLAGS}
    flags["normalized"] = bool(token.get("normalized", not flags["special"]))
    return flags


def named_special(configs: Sequence[Mapping[str, Any]]) -> set[str]:
    """List the texts of the tokens that configurations give a special role, such as EOS.

    >>> sorted(named_special([{"eos_token": "</s>", "pad_token": {"content": "<pad>"}}, {"bos_token": None}]))
    ['</s>', '<pad>']
    """
    texts: set[str | None] = set()
    for config in configs:
        texts |= {text_of_token(config.get(name)) for name in ("eos_token", *_NAMED)}
    return {text for text in texts if text is not None}


def named_ids(configs: Mapping[str, Mapping[str, Any]]) -> tuple[str, dict[str, int]]:
    """Return the name of the file with the ids of added tokens, and these ids, by text.

    Args:
        configs: see `added_tokens`.
    """
    decoder = configs.get("tokenizer_config.json", {}).get("added_tokens_decoder")
    if decoder is not None:
        return "tokenizer_config.json", {token["content"]: int(number) for number, token in decoder.items()}
    return ADDED_TOKENS, {text: int(number) for text, number in configs.get(ADDED_TOKENS, {}).items()}


def moved_tokens(said: Mapping[str, int], vocab: Mapping[str, int]) -> dict[str, tuple[int, int]]:
    """Return the added tokens whose ids differ from a file: by text, the id in the file, and the token's id.

    >>> moved_tokens({"<x>": 7, "<y>": 8}, {"<x>": 7, "<y>": 9})
    {'<y>': (8, 9)}
    """
    moved = {}
    for text, number in said.items():
        if vocab.get(text, number) != number:
            moved[text] = (number, vocab[text])
    return moved


class _Added(msgspec.Struct):
    """An added token; what a file does not say is false, as `tokenizers` reads it."""

    content: str
    single_word: bool = False
    lstrip: bool = False
    rstrip: bool = False
    normalized: bool = False
    special: bool = False


def _values(value: Any) -> list[Any]:
    """Return the tokens of a list, or of a table by name."""
    if isinstance(value, Mapping):
        return list(value.values())
    return value if isinstance(value, list) else []
