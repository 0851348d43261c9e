"""Turn what a record holds of a conversation into messages with `role` and `content`.

The messages are not checked here: `message_of` does that.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from packtool.text.conversations.calls import CALL, calls_of, json_in
from packtool.text.conversations.conversation import ROLES
from packtool.text.conversations.message import MARKS, REASONING, fields_of, is_plain, kind_of, role_of
from packtool.text.faults import bad_conversation
from packtool.text.paths import MISSING, top_of, value_at

_WITHOUT_TEXT = frozenset(("tool_calls", CALL, *REASONING))
"""Fields of which a message may have one in place of a text."""


def messages_in(value: Any, where: str, names: Sequence[str] = ()) -> list[Any]:
    """Return the messages in the value of a field, a list or the JSON of one.

    Args:
        where: the field, for messages.
        names: paths in a message to who speaks, and what, and perhaps whether it trains; none for the usual names.

    Raises:
        Fault: it is no list, or one of its objects has not these fields.

    >>> messages_in('[{"from": "human", "value": "Hi"}]', "chat")
    [{'role': 'user', 'content': 'Hi'}]
    >>> messages_in([{"author": {"name": "bot"}, "body": "Hi"}], "chat", ("author.name", "body"))
    [{'role': 'assistant', 'content': 'Hi'}]
    >>> messages_in(["Hi", "Ho"], "chat")
    [{'role': 'user', 'content': 'Hi'}, {'role': 'assistant', 'content': 'Ho'}]
    """
    if isinstance(value, str) and value.lstrip()[:1] == "[":
        value = parsed(value, where)
    if not isinstance(value, list):
        raise bad_conversation(f"{where} is {kind_of(value)}, not a list of messages")
    if names:
        return [_named(turn, number, names) for number, turn in enumerate(value, 1)]
    if all(map(is_plain, value)):  # as nearly all are
        return value
    if all(isinstance(turn, str) for turn in value):
        return _in_turn(value)
    return [_usual(turn, number) for number, turn in enumerate(value, 1)]


def _in_turn(texts: Sequence[str]) -> list[dict[str, Any]]:
    """Return texts as messages: the user begins, and the assistant answers."""
    messages = []
    for number, text in enumerate(texts):
        messages.append({"role": ("user", "assistant")[number % 2], "content": text})
    return messages


def _named(turn: Any, number: int, names: Sequence[str]) -> dict[str, Any]:
    """Return a turn whose sender, text and mark lie at these paths; what else it has stays beside."""
    fields: Mapping[str, Any] = {}
    if isinstance(turn, Mapping):
        fields = turn
    sender, text, *marks = map(partial(value_at, fields), names)
    without_text = text is MISSING and not fields.keys().isdisjoint(_WITHOUT_TEXT)
    if sender is MISSING or (text is MISSING and not without_text):
        raise bad_conversation(f"message {number} lacks {' or '.join(names[:2])}; its fields are {fields_of(turn)}")
    tops = set(map(top_of, names))
    message = {name: value for name, value in fields.items() if name not in tops}
    if marks and marks[0] is not MISSING:
        message[MARKS[0]] = marks[0]
    message["role"] = role_of(sender)
    if not without_text:
        message["content"] = text
    return message


def _usual(turn: Any, number: int) -> Any:
    """Return a turn with `role` and `content` in place of `from` and `value`; anything else as it is."""
    if not isinstance(turn, Mapping) or "from" not in turn or "value" not in turn:
        return turn
    rest = {name: value for name, value in turn.items() if name not in ("from", "value")}
    if turn["from"] == CALL:
        return {"role": "assistant", "tool_calls": calls_of(turn["value"], number), **rest}
    return {"role": role_of(turn["from"]), "content": turn["value"], **rest}


def side_of(value: Any, name: str, role: str) -> list[Any]:
    """Return a prompt or an answer as messages: a text as one message with this role.

    >>> side_of("Hi", "greeting", "user")
    [{'role': 'user', 'content': 'Hi'}]
    """
    if isinstance(value, bool | int | float):
        value = json.dumps(value)
    if isinstance(value, str) and not _spells_messages(value):
        return [{"role": role, "content": value}]
    if isinstance(value, str):
        remedy = "write the messages as a list; or, if the text itself is meant, give it as the content of a message"
        raise bad_conversation(f"{name or 'the prompt'} is messages as JSON in a string", remedy)
    if isinstance(value, list) and value and isinstance(value[0], str | int | float):
        option = "--prompt" if role == "user" else "--completion"
        raise bad_conversation(f"{name} is a list, of which one is to be named, such as {option}='{name}[0]'")
    return messages_in(value, name)


def _spells_messages(text: str) -> bool:
    """Return whether a text is the JSON of a list of messages, exactly: it may be meant as these, or as it stands.

    >>> _spells_messages('[{"role": "user", "content": "Hi"}]'), _spells_messages('[{"role": "nurse", "content": 1}]')
    (True, False)
    """
    if text.lstrip()[:1] != "[":  # as nearly all are
        return False
    turns = json_in(text)
    if not isinstance(turns, list):
        return False
    for turn in turns:
        if not isinstance(turn, Mapping) or not {"role", "content"} <= turn.keys() or str(turn["role"]) not in ROLES:
            return False
    return bool(turns)


def past_of(history: Any, name: str) -> list[Any]:
    """Return the messages that come before a prompt: as they are, or from [question, answer] pairs.

    >>> past_of([["1 + 1", "2"]], "history")
    [{'role': 'user', 'content': '1 + 1'}, {'role': 'assistant', 'content': '2'}]
    """
    turns = parsed(history, name) or []
    if not isinstance(turns, list):
        raise bad_conversation(f"{name} is {kind_of(turns)}, not a list of messages")
    if not all(isinstance(turn, list) for turn in turns):
        return messages_in(turns, name)
    messages = []
    for pair in turns:
        if len(pair) != 2 or not all(isinstance(text, str) for text in pair):
            raise bad_conversation(f"{name} is neither a list of messages nor of [question, answer] pairs")
        messages += [{"role": "user", "content": pair[0]}, {"role": "assistant", "content": pair[1]}]
    return messages


def parsed(value: Any, name: str) -> Any:
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
