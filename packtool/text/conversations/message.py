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
    if type(message) is not dict or len(message) != 2:
        return False
    return type(message.get("role")) is str and type(message.get("content")) is str


def message_of(message: Any, number: int) -> tuple[dict[str, Any], bool]:
    """Return a message in the form that templates take, and whether it may train.

    Args:
        number: of the message, from 1, for error messages.
    """
    if not isinstance(message, Mapping):
        raise ConversationError(f"message {number} is {kind_of(message)}, not an object")
    role = message.get("role")
    if role is None:
        raise ConversationError(f"message {number} has no role")
    if not isinstance(role, str):
        raise ConversationError(f"message {number} has a role that is {kind_of(role)}, not a string")
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
    named = [name for name in REASONING if name in kept]
    if named:
        # Templates ask for either name. If the message has `thinking`, it keeps its value.
        reasoning = kept[named[0]]
        kept = {"thinking": reasoning, **kept, "reasoning_content": reasoning}
    _require_content(kept, message, number)
    return kept, may


def _part(part: Any) -> Any:
    """Return a part of a content with the type `text` if it is a text: interfaces have other names for that type.

    >>> _part({"type": "input_text", "text": "Hi"}), _part({"text": "Ho"})
    ({'type': 'text', 'text': 'Hi'}, {'type': 'text', 'text': 'Ho'})
    """
    if not isinstance(part, Mapping) or "text" not in part:
        return part
    if part.get("type") in ("input_text", "output_text", None):
        rest = {name: value for name, value in part.items() if name != "type"}
        return {"type": "text", **rest}
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
    if isinstance(content, list):
        for part in content:
            _require_text(part, number)
    elif content is not None:
        raise ConversationError(f"the content of message {number} is {kind_of(content)}, neither a string nor parts")
    elif not message.get("tool_calls") and not message.get("reasoning_content"):
        null = "is null" if "content" in given else "is missing"
        raise ConversationError(f"the content of message {number} {null}; its fields are {_fields(given)}")


def _require_text(part: Any, number: int) -> None:
    """Require a part of the content of a message to be a text or a thought, without a mark of its own."""
    fields: Mapping[str, Any] = {}
    if isinstance(part, Mapping):
        fields = part
    for name in fields:
        if _OF_TRAINING.search(name):
            raise ConversationError(f"a part of the content of message {number} has {name!r}: parts train together")
    kind = fields.get("type")
    if kind in _PARTS and isinstance(fields.get(kind), str):
        return
    what = "without a type"
    if kind is not None:
        what = f"of type {str(kind)[:40]!r}"
    elif fields:
        what = f"of {_fields(fields, 4)}"
    raise ConversationError(f"the content of message {number} has a part {what}, which is not a text")


def _fields(record: Mapping[str, Any], most: int = 12) -> str:
    """List the first names of the fields of an object, which may have any number of them, of any length."""
    return ", ".join(str(name)[:40] for name in list(record)[:most])


def of_shared(message: Any, number: int) -> dict[str, Any]:
    """Return a message with `from` and `value` renamed to role and content; `from: function_call` becomes a tool call.

    >>> of_shared({"from": "human", "value": "Hi"}, 1)
    {'role': 'user', 'content': 'Hi'}
    """
    if not isinstance(message, Mapping):
        raise ConversationError(f"message {number} has neither from and value nor a role")
    if "from" in message and "value" in message:
        rest = {name: value for name, value in message.items() if name not in ("from", "value")}
        if message["from"] == _CALL:
            return {"role": "assistant", "tool_calls": _calls(message["value"], number), **rest}
        return {"role": role_of(message["from"]), "content": message["value"], **rest}
    if "role" in message:
        return dict(message)
    raise ConversationError(
        f"message {number} has neither from and value nor a role; its fields are {_fields(message)}"
    )


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
    calls = _parsed(value)
    if not isinstance(calls, list):
        calls = [calls]
    if not calls:
        raise _no_call(number)
    written = []
    for call in calls:
        if not isinstance(call, dict) or "name" not in call or "arguments" not in call:
            raise _no_call(number)
        arguments = _parsed(call["arguments"])  # as OpenAI writes them, in JSON
        if not isinstance(arguments, dict):
            arguments = call["arguments"]
        written.append({"type": "function", "function": {**call, "arguments": arguments}})
    return written


def _no_call(number: int) -> ConversationError:
    return ConversationError(f"message {number} is a {_CALL} whose value is not JSON with name and arguments")


def _parsed(value: Any) -> Any:
    """Return a value, parsed if it is a text; None if the text is not JSON."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return None


def kind_of(value: Any) -> str:
    """Return the kind of a JSON value in words."""
    names = {dict: "an object", list: "an array", str: "a string", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")
