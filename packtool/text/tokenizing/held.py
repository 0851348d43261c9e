"""Look for what a conversation holds of reasoning and calls of tools, in forms that are read and in others."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from packtool.formats.fields import KINDS, REASONING, TOOLS, hardly_left_out
from packtool.text.conversations.chat import Chat
from packtool.text.conversations.conversation import Conversation, texts_of
from packtool.text.conversations.message import is_empty, is_plain
from packtool.text.conversations.reasoning import THINK, Tags, in_quotes, left_out, said_in, thoughts_of
from packtool.text.conversations.template import fields_asked_for
from packtool.text.conversations.unread import missed, unsaid

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
_READ = frozenset(("role", "content", "name", "tool_calls", "tool_call_id", *REASONING, *TOOLS))
"""Fields of messages that are read, or else refused."""
_FEW = 2  # words of a field of a message that may be a name, or a date; an object is none


class Held(NamedTuple):
    """The parts of a conversation that are masked or dropped, that look like such parts, or that nothing reads."""

    reasoning: bool = False  # whether it has reasoning of the assistant
    hidden: int = 0  # messages whose reasoning no document shows
    other: str = ""  # a tag or field that looks like reasoning in an unknown form; empty without one
    empty: int = 0  # answers that may train, without text, calls and reasoning
    calls: int = 0  # messages whose content spells a tool call
    unread: tuple[str, ...] = ()  # fields that nothing reads: of the record, and "name of a message"


def held_in(talk: Conversation, chat: Chat, documents: Sequence[str]) -> Held:
    """Look for parts that are masked or dropped in the messages of the assistant, and for what nothing reads.

    Args:
        documents: the texts that it was rendered as.
    """
    said = [message for message in talk.messages if message["role"] == "assistant"]
    shown = "\n".join(documents)  # once: `--train-on each` makes as many documents as there are answers
    held = Held(unread=(*talk.unread, *_unread_in_messages(talk, chat, shown)))
    for message, trains in zip(talk.messages, talk.trains, strict=True):
        if trains and message["role"] == "assistant" and is_empty(message):
            held = held._replace(empty=held.empty + 1)
    reasoning, hidden = False, 0
    for message in said:
        if is_plain(message) and not any(closing in message["content"] for _, closing in chat.tags):
            continue  # as nearly all are: a text without reasoning
        is_hidden = False
        for thought in thoughts_of(message, chat.tags):
            reasoning = True
            if unsaid([said_in(message, thought).strip()], [shown]):
                is_hidden = True
        hidden += is_hidden
    if chat.reasoning != "drop":
        held = held._replace(hidden=hidden)
    if chat.reasoning != "train":
        found = [other_reasoning(message, chat.tags) for message in said]
        held = held._replace(reasoning=reasoning, other=next(filter(None, found), ""))
    if chat.tool_calls != "train":
        calls = 0
        for message in said:
            calls += any(map(_CALL.search, texts_of(message.get("content"))))
        held = held._replace(calls=calls)
    return held


def _unread_in_messages(talk: Conversation, chat: Chat, shown: str) -> list[str]:
    """List the fields of messages that are hardly left out on purpose, and whose text is not shown.

    A field that is true or false, or 1 or 0, wherever messages have it may say which messages train; it, or a channel,
    is listed if no template asks for it.
    """
    flags: dict[str, bool] = {}
    found: dict[str, None] = {}
    read: list[str] = []
    for message in talk.messages:
        if len(message) == 2:  # a role and a content, as nearly all have
            continue
        for name, value in message.items():
            if name in _READ or name in found:
                continue
            is_flag = name in KINDS["channel"] or (isinstance(value, int | float) and value in (0, 1))
            kind, texts = hardly_left_out(name), texts_of(value)
            if not texts:
                is_flag = is_flag or missed(name, value, ()) != ""  # a mark
            flags[name] = flags.get(name, True) and is_flag
            if not kind and not _holds_object(value) and len(" ".join(texts).split()) <= _FEW:
                continue
            if not read:
                contents = [each.get("content") for each in talk.messages]
                read = ["\n".join((*texts_of(contents), shown))]
            words = " ".join(unsaid(texts, read)).split()
            if len(words) > _FEW or (words and _holds_object(value)) or (texts and missed(name, value, read)):
                found[name] = None
    asked = _asked_for(chat.templates)
    listed = [name for name, is_flag in flags.items() if name in found or (is_flag and name not in asked)]
    return [f"{name} of a message" for name in listed]


def _holds_object(value: Any) -> bool:
    return isinstance(value, dict) or (isinstance(value, list) and dict in map(type, value))


@lru_cache(1 << 6)
def _asked_for(templates: tuple[tuple[str, str], ...]) -> frozenset[str]:
    """Return the names of the fields that templates ask for."""
    return frozenset().union(*(fields_asked_for(source) for _, source in templates))


def other_reasoning(message: Mapping[str, Any], tags: Tags = (THINK,)) -> str:
    """Return a tag or field that looks like reasoning in an unknown form; "" if there is no such tag or field.

    >>> other_reasoning({"content": "<thought>Hm.</thought>Yes."}), other_reasoning({"content": "Yes.", "think": "Hm."})
    ('<thought>', 'think')
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
