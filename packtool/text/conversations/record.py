"""Parse conversations from the layouts of records in use: one list of messages, and the tools they may call."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from operator import and_
from typing import Any

from packtool.formats.fields import MEDIA, PREFERENCE, SYSTEM, TOOLS
from packtool.text.conversations.conversation import Conversation
from packtool.text.conversations.marks import marks_of_messages, require_trained
from packtool.text.conversations.message import is_plain, kind_of, message_of, of_shared, require_may_train
from packtool.text.faults import bad_conversation


def conversation_of(record: Mapping[str, Any]) -> Conversation:
    """Find the conversation in a record: `messages`, `conversations` with from and value, or `prompt` and `completion`.

    Marks such as `"train": false` keep a message from training, see `marks.py`. Reasoning gets all names that
    templates read, whichever of them the record has. A `system` text becomes the first message, `functions` become
    tools, and `chat_template_kwargs` become arguments of the template.

    Raises:
        Fault: the record holds no conversation, or a message is malformed, or has no content.

    >>> found = conversation_of({"conversations": [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Ho"}]})
    >>> found.messages
    ({'role': 'user', 'content': 'Hi'}, {'role': 'assistant', 'content': 'Ho'})
    >>> conversation_of({"prompt": "1 + 1", "completion": "2"}).prompt
    1
    >>> conversation_of({"system": "Be brief.", "prompt": "1 + 1", "completion": "2"}).messages[0]
    {'role': 'system', 'content': 'Be brief.'}
    """
    given, prompt = _given(record)
    if not given:
        raise bad_conversation("a conversation without messages")
    _require_training(record)
    if all(map(is_plain, given)):  # as nearly all are
        messages, trains = tuple(given), (True,) * len(given)
    else:
        read = [message_of(message, number) for number, message in enumerate(given, 1)]
        messages, trains = tuple(message for message, _ in read), tuple(may for _, may in read)
    listed = marks_of_messages(record, len(messages))
    if listed is not None:
        for number, (message, may) in enumerate(zip(messages, listed, strict=True), 1):
            require_may_train(message, may, number, "the mark in a list")
        trains = tuple(map(and_, trains, listed))
    system = _one_of(record, SYSTEM)
    if system:
        messages, trains = (_system(system, messages[0]), *messages), (True, *trains)
        if prompt is not None:
            prompt += 1
    arguments = _parsed(record.get("chat_template_kwargs"), "chat_template_kwargs")
    tools = _tools(record)
    return Conversation(messages, trains, tools, prompt, template_arguments(arguments, "chat_template_kwargs"))


def _given(record: Mapping[str, Any]) -> tuple[list[Any], int | None]:
    """Return the messages of a record, and how many of them are the prompt; None if it has no prompt and completion.

    >>> _given({"messages": '[{"role": "user", "content": "Hi"}]'})
    ([{'role': 'user', 'content': 'Hi'}], None)
    >>> _given({"prompt": "1 + 1", "completion": "2"})
    ([{'role': 'user', 'content': '1 + 1'}, {'role': 'assistant', 'content': '2'}], 1)
    """
    for name in ("messages", "conversations"):
        given = record.get(name)
        if given is None:
            continue
        if isinstance(given, str) and given.lstrip()[:1] == "[":  # CSV and some tables hold lists as JSON
            given = _parsed(given, name)
        turns = _list(given, name)
        # Messages with from and value are usual in `conversations`, and some records have them in `messages`.
        shared = name == "conversations" or any(isinstance(turn, Mapping) and "from" in turn for turn in turns)
        if not shared:
            return turns, None
        return [of_shared(turn, number) for number, turn in enumerate(turns, 1)], None
    if record.get("prompt") is None or record.get("completion") is None:
        raise bad_conversation("no conversation: neither messages, conversations, nor prompt and completion")
    before = _past(record.get("history")) + _side(record["prompt"], "prompt", "user")
    return before + _side(record["completion"], "completion", "assistant"), len(before)


def _past(history: Any) -> list[dict[str, Any]]:
    """Return [question, answer] pairs as messages.

    >>> _past([["1 + 1", "2"]])
    [{'role': 'user', 'content': '1 + 1'}, {'role': 'assistant', 'content': '2'}]
    """
    messages = []
    for pair in _list(_parsed(history, "history") or [], "history"):
        if not isinstance(pair, list) or len(pair) != 2 or not all(isinstance(text, str) for text in pair):
            raise bad_conversation("history is not a list of [question, answer] pairs")
        messages += [{"role": "user", "content": pair[0]}, {"role": "assistant", "content": pair[1]}]
    return messages


def _require_training(record: Mapping[str, Any]) -> None:
    """Refuse a record that its fields keep from training: a rejected answer, a preference pair, images or sounds."""
    require_trained(record)
    if all(map(record.get, PREFERENCE)) and record.get("messages") is None:
        raise bad_conversation("a preference pair: make the chosen answer the completion, or the last message")
    for name in MEDIA:
        if record.get(name):
            raise bad_conversation(f"it has {name}, which are not read: conversations are text")


def _one_of(record: Mapping[str, Any], names: Sequence[str]) -> Any:
    """Return the value of the one field of these names that is not empty; None if all are empty or missing.

    Raises:
        Fault: several of the fields hold something.
    """
    held = [name for name in names if record.get(name) not in (None, "", [])]
    if len(held) > 1:
        raise bad_conversation(f"the record has both {held[0]} and {held[1]}")
    return record[held[0]] if held else None


def _tools(record: Mapping[str, Any]) -> list[Any] | None:
    """Return the JSON schemas of the functions that may be called; None for no tools."""
    named = list(filter(record.get, TOOLS))
    name = named[0] if named else "tools"
    tools = _parsed(_one_of(record, TOOLS), name)
    if tools is not None and not isinstance(tools, list):
        raise bad_conversation(f"{name} is {kind_of(tools)}, not a list of JSON schemas")
    if name == TOOLS[0]:
        return tools or None
    # OpenAI's older `functions` lack the envelope that templates expect around a tool.
    wrapped = []
    for tool in tools or ():
        if _is_wrapped(tool):
            wrapped.append(tool)
        else:
            wrapped.append({"type": "function", "function": tool})
    return wrapped or None


def _is_wrapped(tool: Any) -> bool:
    """Return whether a tool has its function inside, as `{"type": "function", "function": …}`."""
    return isinstance(tool, Mapping) and isinstance(tool.get("function"), Mapping)


def template_arguments(value: Any, name: str) -> dict[str, Any]:
    """Check the arguments of a template apart from the conversation, and leave out null ones, which tables have.

    Args:
        value: the arguments, by name; None for no arguments.
        name: name of the field that holds them, for error messages.

    Raises:
        Fault: the value is not an object, or names a part of the conversation.

    >>> template_arguments({"enable_thinking": False, "style": None}, "chat_template_kwargs")
    {'enable_thinking': False}
    """
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise bad_conversation(f"{name} is {kind_of(value)}, not an object")
    for taken in ("messages", "tools", "add_generation_prompt"):
        if taken in value:
            raise bad_conversation(f"{name} has {taken!r}, which the conversation itself says")
    return {str(argument): held for argument, held in value.items() if held is not None}


def _system(text: Any, first: Mapping[str, Any]) -> dict[str, Any]:
    """Return a system text as a message.

    Args:
        first: the message that it is to come before, which can't be another system message.
    """
    if not isinstance(text, str):
        raise bad_conversation(f"system is {kind_of(text)}, not a string")
    if first["role"] in ("system", "developer"):
        raise bad_conversation("the record has a system text, and its first message is one, too")
    return {"role": "system", "content": text}


def _parsed(value: Any, name: str) -> Any:
    """Parse JSON in a string, as tables hold it, whose columns have one type; return other values unchanged.

    Args:
        name: name of the field, for error messages.
    """
    if not isinstance(value, str):
        return value
    if not value:
        return None
    try:
        return json.loads(value)
    except RecursionError:
        raise bad_conversation(f"{name} is nested too deeply") from None
    except ValueError as error:
        if re.match(r"[\[{\s]+'", value):
            what = f"{name} is an expression of Python, as CSV of tables has it: write Parquet or JSON Lines instead"
            raise bad_conversation(what) from None
        raise bad_conversation(f"{name} is not valid JSON: {error}") from None


def _side(value: Any, name: str, role: str) -> list[Any]:
    """Return a prompt or a completion as messages: a text as one message with this role."""
    if isinstance(value, list) and value and isinstance(value[0], str):
        raise bad_conversation(f"{name} is a list of strings, neither a text nor messages")
    if isinstance(value, list) and value and isinstance(value[0], int | float):
        raise bad_conversation(f"{name} is a list of numbers, not a text: name fields with --prompt and --completion")
    if isinstance(value, str):
        return [{"role": role, "content": value}]
    return _list(value, name)


def _list(value: Any, name: str) -> list[Any]:
    """Return a value, which must be a list, the value of the field of this name."""
    if not isinstance(value, list):
        raise bad_conversation(f"{name} is {kind_of(value)}, not a list of messages")
    return value
