"""How conversations become texts: options, and templates and special tokens from the files of a tokenizer."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
import xxhash

from packtool.formats.names import MORE_TEMPLATES
from packtool.support.decoding import from_plain
from packtool.text.conversations.conversation import Trained, Use
from packtool.text.conversations.reasoning import THINK
from packtool.text.faults import bad_conversation

TEMPLATE = "chat_template.jinja"
DEFAULT, WITH_TOOLS = "default", "tool_use"
"""Names of templates: the second, where there is one, is for conversations with tools."""
_SPECIAL = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")


class Chat(msgspec.Struct, frozen=True):
    """How conversations become texts: everything that rendering depends on."""

    templates: tuple[tuple[str, str], ...]  # chat templates by name
    tokens: tuple[tuple[str, str], ...] = ()  # texts of special tokens, by the names that templates have for them
    special: tuple[str, ...] = ()  # texts of all special tokens of the tokenizer
    control: tuple[str, ...] = ()  # texts of all special tokens, and of added tokens that the templates write
    stops: tuple[str, ...] = ("</s>",)  # texts of the tokens that generation stops at, the EOS of the store first
    as_text: bool = False  # where a conversation spells a control token, encode it as plain text
    arguments: str = "{}"  # arguments of the templates, apart from conversations, as JSON
    train_on: Trained = "assistant"  # the part of a conversation that trains
    reasoning: Use = "train"  # how to treat reasoning
    tool_calls: Use = "train"  # how to treat tool calls
    tags: tuple[tuple[str, str], ...] = (THINK,)  # pairs of tags of reasoning, opening and closing
    date: str = ""  # date that templates are told, in ISO 8601; empty to refuse a template that asks

    def recorded(self) -> dict[str, Any]:
        """Return the options of conversations, as the manifest has them."""
        return {
            "chat_template_xxh3_128": xxhash.xxh3_128_hexdigest(msgspec.json.encode(self.templates)),
            "train_on": self.train_on,
            "reasoning": self.reasoning,
            "reasoning_tags": list(map(",".join, self.tags[1:])) or None,
            "tool_calls": self.tool_calls,
            "stops": self.stops,
            "template_args": json.loads(self.arguments) or None,
            "template_date": self.date or None,
        }


def templates_of(files: Mapping[str, bytes]) -> dict[str, str]:
    """Return the chat templates of a tokenizer, by name; {} if it has no template.

    The first of these that is there counts: chat_template.jinja with additional_chat_templates; chat_template.json;
    tokenizer_config.json.

    Args:
        files: of the tokenizer, by name.

    Raises:
        Fault: a file is not UTF-8 or JSON, or its template is neither a text nor texts with names.

    >>> templates_of({"tokenizer_config.json": b'{"chat_template": "{{ messages }}"}'})
    {'default': '{{ messages }}'}
    """
    jinja = list(filter(_name_of, files))
    if jinja:
        return {_name_of(file): _text(files[file], file) for file in jinja}
    for name in ("chat_template.json", "tokenizer_config.json"):
        templates = _parsed(files.get(name, b"{}"), name).get("chat_template")
        if templates is None:
            continue
        try:
            found = from_plain(templates, str | dict[str, str] | list[_Named])
        except ValueError as error:
            raise bad_conversation(
                f"the chat_template of {name} is neither a text nor texts with names: {error}"
            ) from None
        if isinstance(found, str):
            return {DEFAULT: found}
        if isinstance(found, dict):
            return found
        return {template.name: template.template for template in found}
    return {}


def _name_of(file: str) -> str:
    """Return the name of the template that a file holds; "" if it is another file.

    >>> _name_of("chat_template.jinja"), _name_of("additional_chat_templates/rag.jinja"), _name_of("tokenizer.json")
    ('default', 'rag', '')
    """
    if file == TEMPLATE:
        return DEFAULT
    folder, _, name = file.rpartition("/")
    return name.removesuffix(".jinja") if folder == MORE_TEMPLATES else ""


class _Named(msgspec.Struct):
    """One of several templates in a list, as tokenizer_config.json has them."""

    name: str
    template: str


def special_tokens_of(files: Mapping[str, bytes]) -> dict[str, str]:
    """Return the texts of special tokens, by the names that templates have for them, such as bos_token.

    >>> special_tokens_of({"tokenizer_config.json": b'{"bos_token": {"content": "<s>"}, "eos_token": "</s>"}'})
    {'bos_token': '<s>', 'eos_token': '</s>'}
    """
    configs = [_parsed(files.get(name, b"{}"), name) for name in ("tokenizer_config.json", "special_tokens_map.json")]
    tokens: dict[str, str] = {}
    for name in _SPECIAL:
        for config in configs:
            token = text_of_token(config.get(name))
            if token is not None:
                tokens[name] = token
                break
    return tokens


def any_of(texts: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern that finds any of these texts, the longest first; without texts it finds nothing.

    >>> any_of(["<a", "<a>"]).findall("<a><a")
    ['<a>', '<a']
    """
    return re.compile("|".join(map(re.escape, sorted(texts, key=len, reverse=True))) or "(?!)")


def text_of_token(value: Any) -> str | None:
    """Return the text of a token, which Transformers saves as a string, or as an object with its options; else None."""
    if isinstance(value, Mapping):
        value = value.get("content")
    if not isinstance(value, str):
        return None
    return value


def _text(data: bytes, name: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise bad_conversation(f"{name} is not valid UTF-8") from None


def _parsed(data: bytes, name: str) -> dict[str, Any]:
    try:
        config = json.loads(data)
    except ValueError as error:
        raise bad_conversation(f"{name} is not valid JSON: {error}") from None
    return config if isinstance(config, dict) else {}
