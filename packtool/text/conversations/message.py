"""Parse one message of a record: its sender, its content, its tool calls, and whether it may train."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from packtool.formats.fields import MARKS, MEDIA, REASONING
from packtool.text.conversations.conversation import ROLES
from packtool.text.conversations.marks import marked, marked_together
from packtool.text.faults import Fault, bad_conversation

_ROLES = {"human": "user", "observation": "tool"}
_ROLES |= dict.fromkeys(("gpt", "chatgpt", "bing", "bard", "bot", "chatbot", "ai", "model"), "assistant")
CALL = "function_call"
"""The sender, in `conversations`, of a tool call, whose value is JSON; a field of messages, in OpenAI's older form."""
_PARTS = ("text", "thinking")
"""Types of the parts of a content; a part has its text in the field that its type names."""
_REASONING = frozenset(REASONING)
_IN_OBJECTS = ("parts", "content", "text", "thinking")
"""Fields of an object that have its text."""
_OF_TEXTS = ("text", "thinking", "reasoning")
"""Ends of the types of such objects: of `reasoning.text`, too, and not of an image."""


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


def message_of(message: Any, number: int) -> tuple[dict[str, Any], bool]:
    """Return a message in the form that templates take, and whether it may train.

    Args:
        number: of the message, from 1, for error messages.
    """
    if not isinstance(message, Mapping):
        raise bad_conversation(f"message {number} is {kind_of(message)}, not an object")
    role = message.get("role")
    if role is None:
        raise _no_role(message, number)
    if not isinstance(role, str):
        raise bad_conversation(f"message {number} has a role that is {kind_of(role)}, not a string")
    for name in MEDIA:
        if message.get(name):
            raise bad_conversation(f"message {number} has {name}, which are not read: conversations are text")
    calls = message.get("tool_calls")
    if isinstance(calls, str):  # tables hold lists as JSON
        calls = json_in(calls or "null")
        message = {**message, "tool_calls": calls}
    if calls and not isinstance(calls, list):
        raise bad_conversation(f"message {number} has tool_calls that are {kind_of(calls)}, not a list")
    may = _may_train(message, number)
    kept = _without_marks(message)
    if isinstance(kept.get("content"), list):
        kept["content"] = list(map(_part, kept["content"]))
    if CALL in kept:
        if "tool_calls" in kept:
            raise bad_conversation(f"message {number} has both tool_calls and {CALL}")
        kept["tool_calls"] = calls_of(kept.pop(CALL), number)
    reasoning = None
    if not _REASONING.isdisjoint(kept):
        reasoning = reasoning_of(kept, f"message {number}")
    if reasoning is not None:
        kept = _with_reasoning(kept, reasoning)
    _require_content(kept, message, number)
    return kept, may


def _no_role(message: Mapping[str, Any], number: int) -> Fault:
    what = f"message {number} has no role; its fields are {fields_of(message)}"
    if not ROLES.isdisjoint(map(role_of, message)):  # several messages in one object
        return bad_conversation(what, "write each turn as a message of its own, with role and content")
    return bad_conversation(f"{what}: name who speaks, and what, with --message-fields")


def _with_reasoning(message: Mapping[str, Any], reasoning: str) -> dict[str, Any]:
    """Return a message with its reasoning under the names that templates ask for: the first three, and no other."""
    kept: dict[str, Any] = {"thinking": reasoning}
    for name, value in message.items():
        if name not in _REASONING:
            kept[name] = value
        elif name in REASONING[:3]:
            kept[name] = reasoning
    kept["reasoning_content"] = reasoning
    return kept


def reasoning_of(holder: Mapping[str, Any], where: str) -> str | None:
    """Return the reasoning in a message, or beside an answer; None if no field of its names has something.

    Args:
        where: what holds it, for messages.

    Raises:
        Fault: it is no text, or two fields have different texts.

    >>> reasoning_of({"reasoning_details": [{"type": "reasoning.text", "text": "Hm."}], "reasoning": "Hm."}, "it")
    'Hm.'
    """
    found: dict[str, str] = {}
    for name in REASONING:
        value = holder.get(name)
        if value is None or value in ([], {}):
            continue
        text = text_of_parts(value)
        if not isinstance(text, str):
            raise bad_conversation(f"{where} has {name} that is {kind_of(value)} without a text")
        found.setdefault(text, name)
    said = list(filter(str.strip, found)) or list(found)
    if len(said) > 1:
        # A word beside a longer text is a mode, such as "high".
        longer = list(filter(_of_words, said))
        said = longer or said
    if len(said) > 1:
        raise bad_conversation(f"{where} has both {found[said[0]]} and {found[said[1]]}")
    return next(iter(said), None)


def _of_words(text: str) -> bool:
    return " " in text.strip()


def text_of_parts(value: Any) -> Any:
    """Return the text in parts or inside of an object, as Anthropic, Bedrock, Gemini and OpenRouter write a system or a
    thought; else the value.

    >>> text_of_parts([{"text": "Be brief."}]), text_of_parts({"parts": [{"text": "Be "}, {"text": "brief."}]})
    ('Be brief.', 'Be brief.')
    >>> text_of_parts([{"type": "thinking", "thinking": "Hm."}]), text_of_parts([{"type": "image"}])
    ('Hm.', [{'type': 'image'}])
    """
    inner: Any = value
    if isinstance(value, Mapping):
        names = list(filter(value.__contains__, _IN_OBJECTS))
        if not names or not str(value.get("type", "text")).endswith(_OF_TEXTS):
            return value
        inner = text_of_parts(value[names[0]])
    elif isinstance(value, list):
        texts = list(map(text_of_parts, value))
        # Several strings are several texts, of which one is meant.
        if all(isinstance(text, str) for text in texts) and (len(value) == 1 or str not in map(type, value)):
            inner = "".join(texts)
    if isinstance(inner, str):
        return inner
    return value


def _part(part: Any) -> Any:
    """Return a part of a content with the type `text` or `thinking`: interfaces have other forms of these.

    >>> _part({"type": "input_text", "text": "Hi"}), _part({"text": "Ho"})
    ({'type': 'text', 'text': 'Hi'}, {'type': 'text', 'text': 'Ho'})
    >>> _part({"text": "Hm.", "thought": True})
    {'type': 'thinking', 'thinking': 'Hm.'}
    >>> _part({"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]})
    {'type': 'thinking', 'thinking': 'Hm.'}
    """
    if not isinstance(part, Mapping):
        return part
    kept = _without_marks(part)
    if kept.get("type") == "thinking":
        return {**kept, "thinking": text_of_parts(kept.get("thinking"))}  # Mistral's has parts of its own
    if "text" not in kept or kept.get("type", "text") not in ("text", "input_text", "output_text"):
        return kept
    thought = kept.pop("thought", False)  # Gemini's
    if thought is True:
        return {"type": "thinking", "thinking": kept["text"]}
    if thought is not False:
        raise bad_conversation(f"a part of a content has a thought that is {kind_of(thought)}, not true or false")
    kept.pop("type", None)
    return {"type": "text", **kept}


def _without_marks(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message, or a part of a content, without its marks and without null fields.

    Tables hold every field of every message, null where a message lacks it; templates ask whether a key is there.
    """
    return {name: value for name, value in given.items() if value is not None and name not in MARKS}


def _may_train(message: Mapping[str, Any], number: int) -> bool:
    """Return whether a message may train, by its marks, such as `"train": false`, and those of its parts and calls.

    Raises:
        Fault: the form of a mark is unknown, or it asks to train on a message not of the assistant.

    >>> _may_train({"role": "assistant", "content": "Hi", "loss": False}, 1)
    False
    """
    parts, calls = message.get("content"), message.get("tool_calls")
    said = [marked(message, f"message {number}")]
    if isinstance(parts, list):
        said.append(marked_together(parts, f"a part of the content of message {number}", "parts"))
    if isinstance(calls, list):
        said.append(marked_together(list(map(_flat, calls)), f"a call of message {number}", "calls"))
    if True in said:
        require_may_train(message, True, number, "a mark")
    return False not in said


def _flat(call: Any) -> Any:
    """Return the fields of a call with those of its function."""
    if isinstance(call, Mapping) and isinstance(call.get("function"), Mapping):
        return {**call["function"], **call}
    return call


def require_may_train(message: Mapping[str, Any], may: bool, number: int, mark: str) -> None:
    """Refuse a mark that asks to train on a message that is not of the assistant."""
    if may and message["role"] != "assistant":
        raise bad_conversation(f"message {number}: {mark} asks to train on what the {message['role']} says")


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
        raise bad_conversation(f"the content of message {number} is {kind_of(content)}, neither a string nor parts")
    elif not message.get("tool_calls") and not message.get("reasoning_content"):
        null = "is null" if "content" in given else "is missing"
        raise bad_conversation(f"the content of message {number} {null}; its fields are {fields_of(given)}")


def _require_text(part: Any, number: int) -> None:
    """Require a part of the content of a message to be a text or a thought."""
    fields: Mapping[str, Any] = {}
    if isinstance(part, Mapping):
        fields = part
    kind = fields.get("type")
    if kind in _PARTS and isinstance(fields.get(kind), str):
        return
    what = "without a type"
    if kind is not None:
        what = f"of type {str(kind)[:40]!r}"
    elif fields:
        what = f"of {fields_of(fields, 4)}"
    raise bad_conversation(f"the content of message {number} has a part {what}, which is not a text")


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
        arguments = json_in(call["arguments"])  # as OpenAI writes them, in JSON
        if not isinstance(arguments, dict):
            arguments = call["arguments"]
        written.append({"type": "function", "function": {**call, "arguments": arguments}})
    return written


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
