"""Parse one message of a record: its sender, its content, its tool calls, and whether it may train."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from packtool.formats.fields import MEDIA
from packtool.text.conversations.conversation import REASONING, ROLES, ConversationError

_ROLES = {"human": "user", "observation": "tool"}
_ROLES |= dict.fromkeys(("gpt", "chatgpt", "bing", "bard", "bot", "chatbot", "ai", "model"), "assistant")
_CALL = "function_call"
"""The sender, in `conversations`, of a tool call, whose value is JSON; a field of messages, in OpenAI's older form."""
_PARTS = ("text", "thinking")
"""Types of the parts of a content; a part has its text in the field that its type names."""
_MARKS = ("train", "training", "trainable", "loss", "weight")
"""Fields of a message that say whether it trains: true or false, or 1 or 0."""
# A word alone, between characters that are no letters, or in camel case.
_OF_TRAINING = re.compile(
    r"(?:\A|[\W_]|(?<=[a-z])(?=[A-Z]))(?i:train(?:ing|ed|able)?|loss|mask(?:ed)?|weights?|supervised?|learn(?:ed)?)"
    r"(?=\Z|[\W_\d]|[A-Z])"
)
"""Names of fields that seem to say so, too: `train_detail`, `loss_scale`, `trainOnTurn`. They are refused."""


def is_plain(message: Any) -> bool:
    """Return whether a message is a role and a text, and nothing else: such messages need no further checks."""
    return (
        type(message) is dict and len(message) == 2 and type(message.get("role")) is type(message.get("content")) is str
    )


def message_of(message: Any, number: int) -> tuple[dict[str, Any], bool]:
    """Return a message in the form that templates take, and whether it may train.

    Args:
        number: of the message, from 1, for error messages.
    """
    if not isinstance(message, Mapping):
        raise ConversationError(f"message {number} is {kind_of(message)}, not an object")
    role = message.get("role")
    if not isinstance(role, str):
        what = "has no role" if role is None else f"has a role that is {kind_of(role)}, not a string"
        raise ConversationError(f"message {number} {what}")
    for name in MEDIA:
        if message.get(name):
            raise ConversationError(f"message {number} has {name}, which are not read: conversations are text")
    may = _may_train(message, number)
    # Tables hold every field of every message, null where a message lacks it; templates ask whether a key is there.
    kept = {name: value for name, value in message.items() if value is not None and name not in _MARKS}
    if isinstance(kept.get("content"), list):
        kept["content"] = list(map(_part, kept["content"]))
    if _CALL in kept:
        if "tool_calls" in kept:
            raise ConversationError(f"message {number} has both tool_calls and {_CALL}")
        kept["tool_calls"] = _calls(kept.pop(_CALL), number)
    reasoning = next((kept[name] for name in REASONING if name in kept), None)
    if reasoning is not None:
        # Templates ask for either name. One that the message has already keeps its value.
        kept = {"thinking": reasoning, **kept, "reasoning_content": reasoning}
    _require_content(kept, message, number)
    return kept, may


def _part(part: Any) -> Any:
    """Return a part of a content with the type `text` if it is a text: interfaces have other names for that type.

    >>> _part({"type": "input_text", "text": "Hi"}), _part({"text": "Ho"})
    ({'type': 'text', 'text': 'Hi'}, {'type': 'text', 'text': 'Ho'})
    """
    if isinstance(part, Mapping) and part.get("type") in ("input_text", "output_text", None) and "text" in part:
        return {"type": "text", **{name: value for name, value in part.items() if name != "type"}}
    return part


def _may_train(message: Mapping[str, Any], number: int) -> bool:
    """Return whether a message may train, by the fields that mark it, such as `"train": false` or `"weight": 0`.

    Raises:
        ConversationError: the form of a mark is unknown, or it asks to train on a message not of the assistant.

    >>> _may_train({"role": "assistant", "content": "Hi", "loss": False}, 1)
    False
    """
    may = True
    for name, value in message.items():
        if value is None or not _OF_TRAINING.search(name):
            continue
        if name not in _MARKS:
            raise ConversationError(
                f"message {number} has {name!r}, which is not read: mark it with train, true or false"
            )
        if value not in (0, 1):
            raise ConversationError(f"message {number}: {name} is true or false, or 1 or 0")
        if value and message["role"] != "assistant":
            raise ConversationError(f"message {number}: {name} asks to train on what the {message['role']} says")
        may = may and bool(value)
    return may


def _require_content(message: Mapping[str, Any], given: Mapping[str, Any], number: int) -> None:
    """Require a message to have contents of text, or else tool calls or reasoning.

    Args:
        message: the message with null fields removed.
        given: the message as the record has it.
    """
    content = message.get("content")
    if isinstance(content, str):
        return
    if content is None:
        if not any(map(message.get, ("tool_calls", "reasoning_content"))):
            names = ", ".join(str(name)[:40] for name in [*given][:12])  # a record may have any number of fields
            null = "is null" if "content" in given else "is missing"
            raise ConversationError(f"the content of message {number} {null}; its fields are {names}")
        return
    if not isinstance(content, list):
        raise ConversationError(f"the content of message {number} is {kind_of(content)}, neither a string nor parts")
    for part in content:
        fields: Mapping[str, Any] = part if isinstance(part, Mapping) else {}
        kind = fields.get("type")
        mark = next(filter(_OF_TRAINING.search, fields), None)
        if mark:
            raise ConversationError(f"a part of the content of message {number} has {mark!r}: parts train together")
        if kind not in _PARTS or not isinstance(fields.get(kind), str):
            what = f"of type {str(kind)[:40]!r}" if kind is not None else "without a type"
            if kind is None and fields:
                what = f"of {', '.join(map(str, [*fields][:4]))}"
            raise ConversationError(f"the content of message {number} has a part {what}, which is not a text")


def of_shared(message: Any, number: int) -> dict[str, Any]:
    """Return a message with `from` and `value` renamed to role and content; `from: function_call` becomes a tool call.

    >>> of_shared({"from": "human", "value": "Hi"}, 1)
    {'role': 'user', 'content': 'Hi'}
    """
    if isinstance(message, Mapping) and "from" in message and "value" in message:
        rest = {name: value for name, value in message.items() if name not in ("from", "value")}
        if message["from"] == _CALL:
            return {"role": "assistant", "tool_calls": _calls(message["value"], number), **rest}
        return {"role": role_of(message["from"]), "content": message["value"], **rest}
    if isinstance(message, Mapping) and "role" in message:
        return dict(message)
    named = f"; its fields are {', '.join(map(str, [*message][:12]))}" if isinstance(message, Mapping) else ""
    raise ConversationError(f"message {number} has neither from and value nor a role{named}")


def role_of(sender: Any) -> Any:
    """Return the role of a sender, whatever its case; an unknown name stays as it is.

    >>> role_of("Human"), role_of("GPT"), role_of("System"), role_of("Critic")
    ('user', 'assistant', 'system', 'Critic')
    """
    name = str(sender).lower()
    if name in _ROLES:
        return _ROLES[name]
    if name in ROLES:
        return name
    return sender


def known_role(sender: str, number: int) -> str:
    """Return the role of a sender, if all templates know it.

    Args:
        number: of the message, from 1, for the error message.

    Raises:
        ConversationError: they do not.

    >>> known_role("Chatbot", 2)
    'assistant'
    """
    role: str = role_of(sender)
    if role not in ROLES:
        raise ConversationError(f"message {number} has the role {role[:40]!r}, which templates do not know")
    return role


def _calls(value: Any, number: int) -> list[Any]:
    """Return the tool calls in a value, JSON of one call or of a list, in the form that templates take.

    >>> _calls('{"name": "add", "arguments": {"a": 1}}', 2)
    [{'type': 'function', 'function': {'name': 'add', 'arguments': {'a': 1}}}]
    """
    try:
        calls = json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        calls = None
    if not isinstance(calls, list):
        calls = [calls]
    if not calls or not all(isinstance(call, dict) and {"name", "arguments"} <= call.keys() for call in calls):
        raise ConversationError(f"message {number} is a {_CALL} whose value is not JSON with name and arguments")
    return [{"type": "function", "function": {**call, "arguments": _arguments(call["arguments"])}} for call in calls]


def _arguments(value: Any) -> Any:
    """Return the arguments of a call, parsed if they are an object in JSON, as OpenAI writes them."""
    try:
        parsed = json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        return value
    return parsed if isinstance(parsed, dict) else value


def kind_of(value: Any) -> str:
    """Return the kind of a JSON value in words."""
    names = {dict: "an object", list: "an array", str: "a string", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")
