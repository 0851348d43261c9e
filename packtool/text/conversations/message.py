"""Parse one message of a record: its sender, its content, its reasoning, and whether it may train.

Whatever form a record has, the message has one: a content is a text or parts of type `text`, the reasoning is a field,
the arguments of calls are objects. `contents.py` finds the form that a template needs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from packtool.text.conversations.calls import CALL, calls_of, json_in, with_object
from packtool.text.conversations.conversation import ROLES
from packtool.text.conversations.layouts import MEDIA, MESSAGE_MARKS, OF_MESSAGE
from packtool.text.faults import bad_conversation

_ROLES = {"human": "user", "observation": "tool"}
_ROLES |= dict.fromkeys(("gpt", "chatgpt", "bing", "bard", "bot", "chatbot", "ai", "model"), "assistant")
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
    message = _without_unread(message, left_out)
    # Tables hold every field of every message, null where a message lacks it; templates ask whether a key is there.
    fields = {name: value for name, value in message.items() if value is not None and name not in MARKS}
    if CALL in fields:
        if "tool_calls" in fields:
            raise bad_conversation(f"message {number} has both tool_calls and {CALL}")
        fields["tool_calls"] = calls_of(fields.pop(CALL), number)
    elif "tool_calls" in fields:
        fields["tool_calls"] = _with_objects(fields["tool_calls"], number)
    thoughts: list[str] = []
    if isinstance(fields.get("content"), list):
        fields["content"], thoughts = _content_of(fields["content"], number)
        if thoughts and role_of(role) in ROLES - {"assistant"}:
            raise bad_conversation(f"message {number} has a part of type 'thinking', and is not the assistant's")
    if thoughts or not fields.keys().isdisjoint(REASONING):
        fields = _with_reasoning(fields, thoughts, number)
    _require_content(fields, message, number)
    return fields, _may_train(message, number)


def _without_unread(message: Mapping[str, Any], left_out: dict[str, None]) -> dict[str, Any]:
    """Return a message without the marks and media that are not read, which are named; see `message_of`."""
    rest = dict(message)
    for name in sorted(_KEPT_OUT & message.keys()):
        if message[name] not in _NOTHING:
            del rest[name]
            left_out[name + OF_MESSAGE] = None
    weight = message.get("weight")
    if isinstance(weight, float) and 0 < weight < 1:
        del rest["weight"]
        left_out["weight" + OF_MESSAGE] = None
    if isinstance(message.get("content"), list):
        rest["content"] = []
        for part in message["content"]:
            medium = _medium_of(part)
            if medium:
                left_out[f"{medium} of a content"] = None
            else:
                rest["content"].append(part)
    return rest


def _medium_of(part: Any) -> str:
    """Return the type of a part of a content that is an image, a video or audio; "" for any other.

    >>> _medium_of({"type": "image_url", "image_url": {"url": "a.png"}}), _medium_of({"image": "a.png"})
    ('image_url', 'image')
    >>> _medium_of({"type": "text", "text": "an image"})
    ''
    """
    if not isinstance(part, Mapping):
        return ""
    names = list(part)
    if "type" in part:
        names = [part["type"]]
    for name in names:
        if isinstance(name, str) and _MEDIA.search(name):
            return name
    return ""


def _with_reasoning(message: dict[str, Any], thoughts: list[str], number: int) -> dict[str, Any]:
    """Return a message with its reasoning under all names that templates ask for.

    Args:
        thoughts: the parts of the content that are reasoning.
    """
    places: dict[str, str] = {}  # where the reasoning stands, by its text
    if thoughts:
        places["".join(thoughts)] = "a part of its content"
    for name in REASONING:
        value = message.pop(name, "")
        if not isinstance(value, str):
            raise bad_conversation(f"message {number} has {name} that is {kind_of(value)}, not a string")
        if value.strip():
            places.setdefault(value, name)
    if len(places) > 1:
        raise bad_conversation(f"message {number} has both {' and '.join(places.values())}, which differ")
    return {**message, **dict.fromkeys(REASONING, next(iter(places), ""))}


def _content_of(parts: list[Any], number: int) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the texts of a content in parts, and the thoughts before them.

    Where a thought follows a text, all stay together, since no field has their order.

    >>> _content_of([{"type": "thinking", "thinking": "Hm."}, {"text": "So."}], 1)
    ([{'type': 'text', 'text': 'So.'}], ['Hm.'])
    """
    every: list[dict[str, Any]] = []
    texts: list[dict[str, Any]] = []
    thoughts: list[str] = []
    thoughts_first = True
    for given in parts:
        part = _part(given, number)
        every.append(part)
        if part["type"] == "thinking":
            thoughts_first = thoughts_first and not texts
            thoughts.append(part["thinking"])
        else:
            texts.append(part)
    if not thoughts_first:
        return every, []
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
    fields: Mapping[str, Any] = {}
    if isinstance(part, Mapping):
        fields = part
    kind = fields.get("type", "text")
    if kind == "thinking":
        thought = fields.get("thinking")
        if isinstance(thought, list):  # Mistral's has parts of its own
            thoughts = ""
            for item in thought:
                inner = _part(item, number)
                thoughts += inner[inner["type"]]
            thought = thoughts
        if isinstance(thought, str):
            return {"type": "thinking", "thinking": thought}
    elif kind in _TEXTS and isinstance(fields.get("text"), str):
        if fields.get("thought") is True:  # Gemini's
            return {"type": "thinking", "thinking": fields["text"]}
        return {"type": "text", "text": fields["text"]}
    what = "that is no object"
    if fields:
        what = f"of {fields_of(fields, 4)}"
    if "type" in fields:
        what = f"of type {str(kind)[:40]!r}"
    raise bad_conversation(f"the content of message {number} has a part {what}, which is not a text")


def _with_objects(calls: Any, number: int) -> list[Any]:
    """Return the tool calls of a message, which may be JSON in a string, with objects as arguments."""
    if isinstance(calls, str):
        calls = json_in(calls or "[]")
    if not isinstance(calls, list):
        raise bad_conversation(f"message {number} has tool_calls that are {kind_of(calls)}, not a list")
    return list(map(with_object, calls))


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
        raise bad_conversation(
            f"the content of message {number} {null}; its fields are {fields_of(given)}", _remedy_for(given)
        )
    if content is not None and not isinstance(content, str | list):
        raise bad_conversation(f"the content of message {number} is {kind_of(content)}, neither a string nor parts")


def _remedy_for(given: Mapping[str, Any]) -> str:
    """Return the options that read a message whose text may lie in another field; "" if no other field has a text."""
    for name, value in given.items():
        if isinstance(value, str) and name not in READ:
            return f"fix the conversation, or give --conversations and --message-fields=role,{name}"
    return ""


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


def kind_of(value: Any) -> str:
    """Return the kind of a JSON value in words."""
    names = {dict: "an object", list: "an array", str: "a string", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")
