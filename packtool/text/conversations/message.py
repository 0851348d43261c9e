"""Parse one message of a record: its sender, its content, its tool calls, and whether it may train.

Whatever form a record has, the message has one: a content is a text or parts of type `text`, the reasoning is a field,
the arguments of calls are objects. `contents.py` finds the form that a template needs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from itertools import takewhile
from typing import Any

from packtool.text.conversations.conversation import ROLES
from packtool.text.conversations.layouts import MEDIA, MESSAGE_MARKS, OF_MESSAGE
from packtool.text.faults import Fault, bad_conversation

_ROLES = {"human": "user", "observation": "tool"}
_ROLES |= dict.fromkeys(("gpt", "chatgpt", "bing", "bard", "bot", "chatbot", "ai", "model"), "assistant")
CALL = "function_call"
"""The sender, in `conversations`, of a tool call, whose value is JSON; a field of messages, in OpenAI's older form."""
REASONING = ("reasoning_content", "thinking", "reasoning")
"""Names of the field of a message that holds the assistant's reasoning; templates ask for one of them."""
MARKS = ("train", "weight")
"""Fields of a message that say whether it trains: true or false, or 1 or 0."""
_KEPT_OUT = frozenset((*MESSAGE_MARKS, *MEDIA))
"""Fields of a message that would keep some of it out of training, and are not read: other marks, and media."""
_NOTHING: tuple[Any, ...] = (None, "", [], {})
READ = frozenset(("role", "content", "name", "tool_calls", "tool_call_id", *REASONING))
"""Fields of messages that are read."""
_TEXTS = ("text", "input_text", "output_text")
"""Types of the parts of a content that are texts."""
_MEDIA = re.compile("image|video|audio")
"""What the type of a part has that is no text, or the name of its field."""


def is_sender(turn: Any) -> bool:
    """Return whether a value is a message, by the names of its fields."""
    return isinstance(turn, Mapping) and ("role" in turn or {"from", "value"} <= turn.keys())


def is_plain(message: Any) -> bool:
    """Return whether a message is a role and a text, and nothing else: such messages need no further checks."""
    if type(message) is not dict or len(message) != 2:
        return False
    return type(message.get("role")) is str and type(message.get("content")) is str


def is_empty(message: Mapping[str, Any]) -> bool:
    """Return whether a message, in the form that templates take, has neither text, calls nor reasoning.

    >>> is_empty({"content": " "}), is_empty({"content": "", "tool_calls": [{"name": "f"}]})
    (True, False)
    """
    parts = message.get("content") or []
    if isinstance(parts, str):
        parts = [{"type": "text", "text": parts}]
    for part in parts:
        text = part[part["type"]]
        if text and not text.isspace():
            return False
    return not message.get("tool_calls") and not message.get("reasoning_content")


def message_of(message: Any, number: int, left_out: dict[str, None]) -> tuple[dict[str, Any], bool]:
    """Return a message in the form that templates take, and whether it may train.

    Args:
        number: of the message, from 1, for error messages.
        left_out: where to name marks and media that are not read.

    >>> message_of({"role": "user", "content": [{"type": "input_text", "text": "Hi"}]}, 1, {})
    ({'role': 'user', 'content': [{'type': 'text', 'text': 'Hi'}]}, True)
    >>> message_of({"role": "assistant", "content": "Ho", "weight": 0}, 2, {})
    ({'role': 'assistant', 'content': 'Ho'}, False)
    """
    if not isinstance(message, Mapping):
        raise bad_conversation(f"message {number} is {kind_of(message)}, not an object")
    role = message.get("role")
    if role is None:
        what = f"message {number} has no role; its fields are {fields_of(message)}"
        raise bad_conversation(what, "name who speaks, and what, with --message-fields")
    if not isinstance(role, str):
        raise bad_conversation(f"message {number} has a role that is {kind_of(role)}, not a string")
    if _may_have_unread(message):
        message = _without_unread(message, left_out)
    # Tables hold every field of every message, null where a message lacks it; templates ask whether a key is there.
    kept = {name: value for name, value in message.items() if value is not None and name not in MARKS}
    if CALL in kept:
        if "tool_calls" in kept:
            raise bad_conversation(f"message {number} has both tool_calls and {CALL}")
        kept["tool_calls"] = calls_of(kept.pop(CALL), number)
    elif "tool_calls" in kept:
        kept["tool_calls"] = _given_calls(kept["tool_calls"], number)
    thoughts: list[str] = []
    if isinstance(kept.get("content"), list):
        kept["content"], thoughts = _content_of(kept["content"], number)
        if thoughts and role_of(role) in ROLES - {"assistant"}:
            raise bad_conversation(f"message {number} has a part of type 'thinking', and is not the assistant's")
    if thoughts or not kept.keys().isdisjoint(REASONING):
        kept = _with_reasoning(kept, thoughts, number)
    _require_content(kept, message, number)
    return kept, _may_train(message, number)


def _may_have_unread(message: Mapping[str, Any]) -> bool:
    """Return whether a message may have marks or media that are not read: nearly all have neither."""
    return isinstance(message.get("content"), list) or "weight" in message or not _KEPT_OUT.isdisjoint(message)


def _without_unread(message: Mapping[str, Any], left_out: dict[str, None]) -> dict[str, Any]:
    """Return a message without the marks and media that are not read, which are named; see `message_of`."""
    unread = {name: name + OF_MESSAGE for name in sorted(_KEPT_OUT & message.keys()) if message[name] not in _NOTHING}
    weight = message.get("weight")
    if isinstance(weight, float) and 0 < weight < 1:
        unread["weight"] = "weight" + OF_MESSAGE
    kept = {name: value for name, value in message.items() if name not in unread}
    if isinstance(message.get("content"), list):
        kept["content"] = [part for part in message["content"] if not _medium_of(part)]
        unread |= {name: f"{name} of a content" for name in filter(None, map(_medium_of, message["content"]))}
    left_out |= dict.fromkeys(unread.values())
    return kept


def _medium_of(part: Any) -> str:
    """Return the type of a part of a content that is an image, a video or audio; "" for any other.

    >>> _medium_of({"type": "image_url", "image_url": {"url": "a.png"}}), _medium_of({"image": "a.png"})
    ('image_url', 'image')
    >>> _medium_of({"type": "text", "text": "an image"})
    ''
    """
    if not isinstance(part, Mapping):
        return ""
    names = [part["type"]] if "type" in part else list(part)
    return next((name for name in names if isinstance(name, str) and _MEDIA.search(name)), "")


def _with_reasoning(message: dict[str, Any], thoughts: list[str], number: int) -> dict[str, Any]:
    """Return a message with its reasoning under all names that templates ask for.

    Args:
        thoughts: the parts of the content that are reasoning.
    """
    said = {"".join(thoughts): "a part of its content"} if thoughts else {}
    for name in REASONING:
        value = message.pop(name, "")
        if not isinstance(value, str):
            raise bad_conversation(f"message {number} has {name} that is {kind_of(value)}, not a string")
        if value.strip():
            said.setdefault(value, name)
    if len(said) > 1:
        raise bad_conversation(f"message {number} has both {' and '.join(said.values())}, which differ")
    return {**message, **dict.fromkeys(REASONING, next(iter(said), ""))}


def _content_of(parts: list[Any], number: int) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the texts of a content in parts, and the thoughts before them.

    Where a thought follows a text, all stay together, since no field has their order.

    >>> _content_of([{"type": "thinking", "thinking": "Hm."}, {"text": "So."}], 1)
    ([{'type': 'text', 'text': 'So.'}], ['Hm.'])
    """
    read = [_part(part, number) for part in parts]
    thoughts = [part["thinking"] for part in takewhile(lambda part: part["type"] == "thinking", read)]
    texts = read[len(thoughts) :]
    if any(part["type"] == "thinking" for part in texts):
        return read, []
    return texts, thoughts


def _part(part: Any, number: int) -> dict[str, Any]:
    """Return a part of a content with the type `text` or `thinking`.

    >>> _part({"type": "input_text", "text": "Hi"}, 1), _part({"text": "Ho"}, 1)
    ({'type': 'text', 'text': 'Hi'}, {'type': 'text', 'text': 'Ho'})
    >>> _part({"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}, 1)
    {'type': 'thinking', 'thinking': 'Hm.'}
    >>> _part({"text": "Hm.", "thought": True}, 1)
    {'type': 'thinking', 'thinking': 'Hm.'}
    """
    fields: Mapping[str, Any] = part if isinstance(part, Mapping) else {}
    kind = fields.get("type", "text")
    if kind == "thinking":
        thought = fields.get("thinking")
        if isinstance(thought, list):  # Mistral's has parts of its own
            inner = [_part(item, number) for item in thought]
            thought = "".join(item[item["type"]] for item in inner)
        if isinstance(thought, str):
            return {"type": "thinking", "thinking": thought}
    elif kind in _TEXTS and isinstance(fields.get("text"), str):
        if fields.get("thought") is True:  # Gemini's
            return {"type": "thinking", "thinking": fields["text"]}
        return {"type": "text", "text": fields["text"]}
    what = f"of {fields_of(fields, 4)}" if fields else "that is no object"
    if "type" in fields:
        what = f"of type {str(kind)[:40]!r}"
    raise bad_conversation(f"the content of message {number} has a part {what}, which is not a text")


def _may_train(message: Mapping[str, Any], number: int) -> bool:
    """Return whether a message may train, by its marks, all of which must say so."""
    may = True
    for name in MARKS:
        value = message.get(name)
        if value is None:
            continue
        if not isinstance(value, bool | int | float) or value not in (0, 1):
            raise bad_conversation(f"message {number}: {name} is true or false, or 1 or 0")
        if value and message["role"] != "assistant":
            raise bad_conversation(f"message {number}: a mark asks to train on what the {message['role']} says")
        may = may and bool(value)
    return may


def _require_content(message: Mapping[str, Any], given: Mapping[str, Any], number: int) -> None:
    """Require a message to have a content of text, or else tool calls or reasoning.

    Args:
        message: the message with null fields removed.
        given: the message as the record has it.
    """
    content = message.get("content")
    if content is None and not message.get("tool_calls") and not message.get("reasoning_content"):
        null = "is null" if "content" in given else "is missing"
        raise bad_conversation(f"the content of message {number} {null}; its fields are {fields_of(given)}")
    if content is not None and not isinstance(content, str | list):
        raise bad_conversation(f"the content of message {number} is {kind_of(content)}, neither a string nor parts")


def fields_of(record: Any, most: int = 12) -> str:
    """List the first names of the fields of an object, which may have any number of them, of any length."""
    if not isinstance(record, Mapping):
        return "none"
    return ", ".join(str(name)[:40] for name in list(record)[:most])


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
        Fault: they do not.

    >>> known_role("Chatbot", 2)
    'assistant'
    """
    role: str = role_of(sender)
    if role not in ROLES:
        raise bad_conversation(f"message {number} has the role {role[:40]!r}, which templates do not know")
    return role


def calls_of(value: Any, number: int) -> list[Any]:
    """Return the tool calls in a value, JSON of one call or of a list, in the form that templates take.

    >>> calls_of('{"name": "add", "arguments": {"a": 1}}', 2)
    [{'type': 'function', 'function': {'name': 'add', 'arguments': {'a': 1}}}]
    """
    calls = json_in(value)
    if not isinstance(calls, list):
        calls = [calls]
    if not calls:
        raise _no_call(number)
    written = []
    for call in calls:
        if not isinstance(call, dict) or "name" not in call or "arguments" not in call:
            raise _no_call(number)
        written.append({"type": "function", "function": _with_object(call)})
    return written


def _given_calls(calls: Any, number: int) -> list[Any]:
    """Return the tool calls of a message with objects as arguments: interfaces write them as JSON, as tables do all."""
    if isinstance(calls, str):
        calls = json_in(calls or "[]")
    if not isinstance(calls, list):
        raise bad_conversation(f"message {number} has tool_calls that are {kind_of(calls)}, not a list")
    return list(map(_with_object, calls))


def _with_object(call: Any) -> Any:
    """Return a call whose arguments are an object, if they are one as JSON."""
    if not isinstance(call, Mapping):
        return call
    if isinstance(call.get("function"), Mapping):
        return {**call, "function": _with_object(call["function"])}
    arguments = json_in(call.get("arguments"))
    return {**call, "arguments": arguments} if isinstance(arguments, dict) else call


def _no_call(number: int) -> Fault:
    return bad_conversation(f"message {number} is a {CALL} whose value is not JSON with name and arguments")


def json_in(value: Any) -> Any:
    """Return a value, parsed if it is a text that is JSON.

    >>> json_in('{"a": 1}'), json_in("a"), json_in(1)
    ({'a': 1}, 'a', 1)
    """
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def kind_of(value: Any) -> str:
    """Return the kind of a JSON value in words."""
    names = {dict: "an object", list: "an array", str: "a string", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")
