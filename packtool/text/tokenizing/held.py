"""Look for what a conversation holds of reasoning and calls of tools, and for fields of messages that nothing reads."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from packtool.text.conversations.chat import Chat
from packtool.text.conversations.conversation import Conversation
from packtool.text.conversations.layouts import BY_NAME, OF_MESSAGE, RecordLayout
from packtool.text.conversations.message import READ, is_empty
from packtool.text.conversations.reasoning import said_in, thoughts_of
from packtool.text.conversations.template import fields_asked_for


class Held(NamedTuple):
    """The parts of a conversation that are masked or dropped, and what nothing reads."""

    reasoning: bool = False  # whether it has reasoning of the assistant
    calls: bool = False  # whether a message calls a tool
    hidden: int = 0  # messages whose reasoning no document shows
    empty: int = 0  # answers that may train, without text, calls and reasoning
    layout: RecordLayout = BY_NAME  # where it lay in its record
    taken: tuple[str, ...] = ()  # paths that it was read from
    unread: tuple[str, ...] = ()  # fields that nothing reads: of the record, and "name of a message"


def held_in(talk: Conversation, chat: Chat, documents: Sequence[str]) -> Held:
    """Look for parts that are masked or dropped in the messages of the assistant, and for what nothing reads.

    Args:
        documents: the texts that it was rendered as.
    """
    reasoning, calls, hidden, empty = False, False, 0, 0
    unread = dict.fromkeys(talk.unread)
    shown = ""
    for message, trains in zip(talk.messages, talk.trains, strict=True):
        if len(message) > 2:  # nearly all have a role and a content alone
            calls = calls or bool(message.get("tool_calls"))
            left = message.keys() - READ - _asked_for(chat.templates)
            unread |= dict.fromkeys(name + OF_MESSAGE for name in sorted(left))
        if message["role"] != "assistant":
            continue
        empty += trains and is_empty(message)
        thoughts = list(thoughts_of(message, chat.tags))
        if thoughts:
            reasoning = True
            shown = shown or "\n".join(documents)  # `--train-on each` makes as many as there are answers
            hidden += not all(said_in(message, thought).strip() in shown for thought in thoughts)
    if chat.reasoning == "drop":
        hidden = 0
    return Held(reasoning, calls, hidden, empty, talk.layout, tuple(talk.record), tuple(unread))


@lru_cache(1 << 6)
def _asked_for(templates: tuple[tuple[str, str], ...]) -> frozenset[str]:
    """Return the names of the fields that templates ask for."""
    return frozenset().union(*(fields_asked_for(source) for _, source in templates))
