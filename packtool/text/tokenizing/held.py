"""Look for what a conversation holds of reasoning and calls of tools, in forms that are read and in others."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from packtool.formats.fields import REASONING
from packtool.text.conversations.chat import Chat
from packtool.text.conversations.conversation import Conversation, texts_of
from packtool.text.conversations.reasoning import THINK, Tags, in_quotes, left_out, thoughts_of

_WORDS = "think|thinking|thoughts?|reasoning|reflection|scratchpad|rationale"
_TAG = re.compile(
    rf"(?i)</?(?:\w+[:_])?(?:{_WORDS}|reason)>|\[/?think\]|<\|?(?:begin|end|start)_of_(?:thought|think|reasoning)\|?>"
    r"|<\|channel\|?>|<\|(?:start|end)_thinking\|>"
)
_FIELD = re.compile(
    rf"(?i)(?:\w+_)?(?:{_WORDS}|cot|chain_of_thought)(?:_(?:content|text|details|steps|trace|process))?"
)
"""What tags and fields of reasoning look like, in whatever form."""
_CALL = re.compile(r"<tool_call>|\[TOOL_CALLS\]|<function=")
"""What begins a call of a tool that is spelled in a content."""


class Held(NamedTuple):
    """The parts of a conversation that are masked or dropped, and parts that look like them in an unknown form."""

    reasoning: bool = False  # whether it has reasoning of the assistant
    other: str = ""  # a tag or field that looks like reasoning in an unknown form; empty without one
    calls: int = 0  # messages whose content spells a tool call
    flag: str = ""  # a field of messages, true or false or 1 or 0, that nothing reads; empty without one


def held_in(talk: Conversation, chat: Chat) -> Held:
    """Look for parts that are masked or dropped in the messages of the assistant, and for what may be a mark in any."""
    said = [message for message in talk.messages if message["role"] == "assistant"]
    held = Held(flag=_flag(talk, chat))
    if chat.reasoning != "train":
        found = [other_reasoning(message, chat.tags) for message in said]
        reasoning = any(next(thoughts_of(message, chat.tags), None) for message in said)
        held = held._replace(reasoning=reasoning, other=next(filter(None, found), ""))
    if chat.tool_calls != "train":
        spelled = [message for message in said if any(map(_CALL.search, texts_of(message.get("content"))))]
        held = held._replace(calls=len(spelled))
    return held


def _flag(talk: Conversation, chat: Chat) -> str:
    """Return a field that is true or false, or 1 or 0, wherever messages have it, and that no template names.

    It may say which messages train, but has another name than a mark.
    """
    flags: dict[str, bool] = {}
    for message in talk.messages:
        if len(message) == 2:  # a role and a content, as nearly all have
            continue
        for name, value in message.items():
            is_flag = isinstance(value, int | float) and value in (0, 1)
            flags[name] = flags.get(name, True) and is_flag
    for name, is_flag in flags.items():
        if is_flag and not any(re.search(rf"\b{re.escape(name)}\b", source) for _, source in chat.templates):
            return name
    return ""


def other_reasoning(message: Mapping[str, Any], tags: Tags = (THINK,)) -> str:
    """Return a tag or field that looks like reasoning in an unknown form; "" if there is no such tag or field.

    >>> other_reasoning({"content": "<thought>Hm.</thought>Yes."}), other_reasoning({"content": "Yes.", "cot": "Hm."})
    ('<thought>', 'cot')
    """
    content = message.get("content")
    texts = [content] if isinstance(content, str) else [part.get("text", "") for part in content or ()]
    for text in texts:
        left = left_out(text, tags)
        for tag in _TAG.finditer(left):
            if not in_quotes(left, tag):
                return tag[0]
    for name, value in message.items():
        read = name in REASONING and isinstance(value, str)
        if not read and isinstance(value, str | list | dict) and value and _FIELD.fullmatch(name):
            return name
    return ""
