"""A conversation as chat templates take it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from packtool.text.conversations.layouts import BY_NAME, RecordLayout

ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function", "ipython"})
"""Roles that every template may be given."""
Trained = Literal["assistant", "all", "last", "each", "completion"]
"""The part of a conversation that trains."""
Use = Literal["train", "mask", "drop"]
"""The treatment of reasoning or tool calls: they train, they are only shown, or they are left out."""


@dataclass(frozen=True)
class Conversation:
    """A conversation as chat templates take it."""

    messages: tuple[dict[str, Any], ...]  # dictionaries with a role, and with fields for the template: content …
    trains: tuple[bool, ...]  # whether each message may train; a message of another role than the assistant never does
    tools: list[Any] | None = None  # JSON schemas of the functions that may be called; None for no tools
    prompt: int | None = None  # messages that are the prompt; None if the record has no prompt and completion
    arguments: Mapping[str, Any] = field(default_factory=dict)  # further arguments of the template, by name
    record: Mapping[str, Any] = field(default_factory=dict, compare=False)  # values that it was made of, by their paths
    layout: RecordLayout = BY_NAME  # where they lay
    unread: tuple[str, ...] = ()  # fields of its record that nothing reads

    def texts(self) -> list[str]:
        """List all texts that a template may show."""
        return texts_of([self.messages, self.tools, self.arguments])

    def masked(self, messages: Sequence[bool]) -> Conversation:
        """Return the conversation with some messages that do not train.

        Args:
            messages: whether each message is masked.
        """
        trains = (may and not masked for may, masked in zip(self.trains, messages, strict=True))
        return replace(self, trains=tuple(trains))


def without_tool_calls(conversation: Conversation) -> Conversation:
    """Return a conversation without tools, tool calls and their results.

    A message of tool calls alone goes, too.

    >>> call = {"role": "assistant", "tool_calls": [{"function": {"name": "add"}}]}
    >>> talk = Conversation(({"role": "user", "content": "1 + 1"}, call, {"role": "tool", "content": "2"}), (True,) * 3)
    >>> without_tool_calls(talk).messages
    ({'role': 'user', 'content': '1 + 1'},)
    """
    messages, trains, prompt = [], [], conversation.prompt
    for number, (message, may) in enumerate(zip(conversation.messages, conversation.trains, strict=True)):
        kept = {name: value for name, value in message.items() if name not in ("tool_calls", "tools")}
        if message["role"] in ("tool", "function", "ipython") or ("tool_calls" in message and not kept.get("content")):
            if prompt is not None and number < (conversation.prompt or 0):
                prompt -= 1
            continue
        messages.append(kept)
        trains.append(may)
    return replace(conversation, messages=tuple(messages), trains=tuple(trains), tools=None, prompt=prompt)


def texts_of(value: Any) -> list[str]:
    """List all texts in a JSON value, in no order.

    >>> texts_of([{"role": "user", "content": ["Hi", 1]}])
    ['user', 'Hi']
    """
    texts: list[str] = []
    waiting = [value]
    for item in waiting:  # the loop also reaches the items that it appends: no recursion, however deep a value is
        if isinstance(item, str):
            texts.append(item)
        elif isinstance(item, dict):
            waiting += item.values()
        elif isinstance(item, list | tuple):
            waiting += item
    return texts
