"""A conversation as records of many kinds hold it: one list of messages, and the tools they may call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_ROLES = {"human": "user", "gpt": "assistant", "bot": "assistant", "chatbot": "assistant", "observation": "tool"}
_REASONING = ("reasoning_content", "thinking", "reasoning")


class ConversationError(Exception):
    """What is wrong with a conversation, or with a template that is to render it, in words."""


@dataclass(frozen=True)
class Conversation:
    """What a chat template renders.

    Attributes:
        messages: each with a role and whatever the template reads, such as content, tool_calls and reasoning_content.
        trains: of each message, whether it may train; only those of the assistant ever do.
        tools: JSON schemas of the functions that may be called; None for no tools.
        prompt: how many of the messages are a prompt, where the record says it; else None.
    """

    messages: tuple[dict[str, Any], ...]
    trains: tuple[bool, ...]
    tools: list[Any] | None = None
    prompt: int | None = None


def conversation_of(record: Mapping[str, Any]) -> Conversation:
    """The conversation in a record: `messages`, `conversations` with from and value, or `prompt` and `completion`.

    A message with `"train": false` or a `weight` of 0 does not train. Reasoning is passed on under the names that
    templates read, whichever of them the record has.

    Raises:
        ConversationError: there is none, or a message is none.

    >>> found = conversation_of({"conversations": [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Ho"}]})
    >>> found.messages
    ({'role': 'user', 'content': 'Hi'}, {'role': 'assistant', 'content': 'Ho'})
    >>> conversation_of({"prompt": "1 + 1", "completion": "2"}).prompt
    1
    """
    prompt = None
    if record.get("messages") is not None:
        given = _list(record["messages"], "messages")
    elif record.get("conversations") is not None:
        given = [
            _of_shared(each, number) for number, each in enumerate(_list(record["conversations"], "conversations"), 1)
        ]
    elif record.get("prompt") is not None and record.get("completion") is not None:
        before = _side(record["prompt"], "prompt", "user")
        prompt = len(before)
        given = before + _side(record["completion"], "completion", "assistant")
    else:
        raise ConversationError("no conversation: neither messages, conversations, nor prompt and completion")
    if not given:
        raise ConversationError("a conversation without messages")
    pairs = [_message(each, number) for number, each in enumerate(given, 1)]
    tools = record.get("tools")
    if tools is not None and not isinstance(tools, list):
        raise ConversationError(f"tools is {_kind(tools)}, not a list of JSON schemas")
    return Conversation(tuple(each for each, _ in pairs), tuple(trains for _, trains in pairs), tools or None, prompt)


def _of_shared(message: Any, number: int) -> dict[str, Any]:
    """A message of from and value, with the names of messages."""
    if isinstance(message, Mapping) and "from" in message and "value" in message:
        rest = {name: value for name, value in message.items() if name not in ("from", "value")}
        return {"role": _ROLES.get(str(message["from"]), message["from"]), "content": message["value"], **rest}
    if isinstance(message, Mapping) and "role" in message:
        return dict(message)
    raise ConversationError(f"message {number} has neither from and value nor a role")


def _side(value: Any, name: str, role: str) -> list[Any]:
    """One of prompt and completion: a text, or messages."""
    return [{"role": role, "content": value}] if isinstance(value, str) else _list(value, name)


def _message(message: Any, number: int) -> tuple[dict[str, Any], bool]:
    if not isinstance(message, Mapping):
        raise ConversationError(f"message {number} is {_kind(message)}, not an object")
    if not isinstance(message.get("role"), str):
        raise ConversationError(f"message {number} has no role")
    weight, train = message.get("weight"), message.get("train")
    if not (weight is None or weight in (0, 1)) or not (train is None or isinstance(train, bool)):
        raise ConversationError(f"message {number}: train is true or false, and a weight 0 or 1")
    kept = {name: value for name, value in message.items() if name not in ("train", "weight")}
    reasoning = next((kept[name] for name in _REASONING if kept.get(name) is not None), None)
    if reasoning is not None:
        kept = {"thinking": reasoning, **kept, "reasoning_content": reasoning}
    return kept, train is not False and weight != 0


def _list(value: Any, name: str) -> list[Any]:
    if not isinstance(value, list):
        raise ConversationError(f"{name} is {_kind(value)}, not a list of messages")
    return value


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "an array", str: "a string", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")
