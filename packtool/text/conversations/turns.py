"""Turn what a record holds of a conversation, in whatever form, into messages with `role` and `content`.

The messages are not checked here: `message_of` does that.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from packtool.formats.fields import KNOWN
from packtool.text.conversations.message import CALL, calls_of, fields_of, is_plain, kind_of, role_of
from packtool.text.faults import bad_conversation
from packtool.text.paths import MISSING, top_of, value_at

_CONTENTS = ("parts", "message", "text")
"""Names of the content of a message with a role, in Gemini's form, Cohere's, and others."""


def holds_turns(value: Any) -> bool:
    """Return whether a value looks like a conversation: a list of objects with roles, or of questions and answers.

    >>> holds_turns([{"role": "user", "content": "Hi"}]), holds_turns([{"input": "Hi", "output": "Ho"}])
    (True, True)
    >>> holds_turns(["Hi", "Ho"]), holds_turns([{"id": 1}])
    (False, False)
    """
    if _in_columns(value, ()):
        return True
    if not isinstance(value, list) or not value:
        return False
    first = value[0]
    return has_sender(first) or _content_name(first) != "" or _pair(first, is_first=True) is not None


def holds_text(value: Any) -> bool:
    """Return whether a value may be a prompt or an answer: a text, or messages."""
    return isinstance(value, str) or holds_turns(value)


def has_sender(turn: Any) -> bool:
    """Return whether a value is a message, by the names of its fields."""
    return isinstance(turn, Mapping) and ({"role", "content"} <= turn.keys() or {"from", "value"} <= turn.keys())


def messages_in(value: Any, where: str, names: Sequence[str] = ()) -> list[Any]:
    """Return the messages in the value of a field, a list or the JSON of one.

    Args:
        where: the field, for messages.
        names: paths in a message to who speaks, and what, where they are not the usual ones.

    Raises:
        Fault: it is no list, or one of its objects is none of the forms below.

    >>> messages_in(["Hi", "Ho"], "chat")
    [{'role': 'user', 'content': 'Hi'}, {'role': 'assistant', 'content': 'Ho'}]
    >>> messages_in([{"input": "1 + 1", "output": "2"}], "chat")
    [{'role': 'user', 'content': '1 + 1'}, {'role': 'assistant', 'content': '2'}]
    >>> messages_in('[{"from": "human", "value": "Hi"}]', "chat")
    [{'role': 'user', 'content': 'Hi'}]
    >>> messages_in([{"role": "model", "parts": [{"text": "Hi"}]}], "chat")
    [{'role': 'assistant', 'content': [{'text': 'Hi'}]}]
    >>> messages_in([{"author": {"name": "bot"}, "body": "Hi"}], "chat", ("author.name", "body"))
    [{'role': 'assistant', 'content': 'Hi'}]
    """
    if isinstance(value, str) and is_list(value):
        value = parsed(value, where)
    if _in_columns(value, names):
        value = [dict(zip(value, row, strict=True)) for row in zip(*value.values(), strict=True)]
    if not isinstance(value, list):
        raise bad_conversation(f"{where} is {kind_of(value)}, not a list of messages")
    if names:
        return [_named(turn, number, names) for number, turn in enumerate(value, 1)]
    if all(map(is_plain, value)):  # as nearly all are
        return value
    if all(isinstance(turn, str) for turn in value):
        return _in_turn(value)
    pairs = [_pair(turn, is_first=number == 0) for number, turn in enumerate(value)]
    if None not in pairs:
        return _questions_and_answers(value, pairs)
    renamed = _content_name(value[0]) != ""
    return [_usual(turn, number, renamed=renamed) for number, turn in enumerate(value, 1)]


def is_list(value: Any) -> bool:
    """Return whether a value is a list, or the JSON of one, as CSV and some tables hold it."""
    return isinstance(value, list) or (isinstance(value, str) and value.lstrip()[:1] == "[")


def _in_turn(texts: Sequence[str]) -> list[dict[str, Any]]:
    """Return texts as messages: the user begins, and the assistant answers."""
    messages = []
    for number, text in enumerate(texts):
        messages.append({"role": ("user", "assistant")[number % 2], "content": text})
    return messages


def _questions_and_answers(turns: Sequence[Any], pairs: Sequence[Any]) -> list[dict[str, Any]]:
    """Return questions and answers as messages, behind what the system says, where an object has that.

    Args:
        pairs: for each turn, the names of its question and its answer.
    """
    messages: list[dict[str, Any]] = []
    for turn, (question, answer) in zip(turns, pairs, strict=True):
        if turn.get("system"):
            messages.append({"role": "system", "content": turn["system"]})
        messages.append({"role": "user", "content": turn[question]})
        messages.append({"role": "assistant", "content": turn[answer]})
    return messages


def _named(turn: Any, number: int, names: Sequence[str]) -> dict[str, Any]:
    """Return a turn whose sender and text lie at these paths; what else it has stays beside, as marks may be in it."""
    sender, text = [value_at(turn, name) if isinstance(turn, Mapping) else MISSING for name in names]
    if sender is MISSING or text is MISSING:
        raise bad_conversation(f"message {number} lacks {' or '.join(names)}; its fields are {fields_of(turn)}")
    tops = set(map(top_of, names))
    rest = {name: value for name, value in turn.items() if name not in tops}
    if isinstance(sender, bool):
        sender = said_by(names[0], sender)
    return {**rest, "role": role_of(sender), "content": text}


def said_by(name: str, value: bool) -> str:
    """Return who speaks, by a field that is true or false and named after one of two; "" if it is named otherwise.

    >>> said_by("is_human", True), said_by("from.bot", False), said_by("is_long", True)
    ('user', 'user', '')
    """
    for word in re.split(r"[\W_]", name):
        role = role_of(word)
        if role in ("user", "assistant"):
            return ("user", "assistant")[(role == "assistant") == value]
    return ""


def _usual(turn: Any, number: int, *, renamed: bool) -> Any:
    """Return a turn with the usual names of a message, if it has others that are known; anything else as it is.

    Args:
        renamed: contents may have another name than `content`, as that of the first turn has.
    """
    if not isinstance(turn, Mapping):
        return turn
    if "from" in turn and "value" in turn:
        rest = {name: value for name, value in turn.items() if name not in ("from", "value")}
        if turn["from"] == CALL:
            return {"role": "assistant", "tool_calls": calls_of(turn["value"], number), **rest}
        return {"role": role_of(turn["from"]), "content": turn["value"], **rest}
    content = _content_name(turn)
    if not renamed or not content:
        return turn
    message = {name: value for name, value in turn.items() if name != content}
    if content == "parts" and turn["role"] == "model":  # Gemini's
        message["role"] = "assistant"
    return {**message, "content": turn[content]}


def side_of(value: Any, name: str, role: str) -> list[Any]:
    """Return a prompt or an answer as messages: a text as one message with this role.

    >>> side_of("Hi", "greeting", "user")
    [{'role': 'user', 'content': 'Hi'}]
    """
    if isinstance(value, str):
        return [{"role": role, "content": value}]
    if isinstance(value, list) and value and isinstance(value[0], str | int | float):
        option = "--prompt" if role == "user" else "--completion"
        raise bad_conversation(f"{name} is a list, of which one is to be named, such as {option}='{name}[0]'")
    return messages_in(value, name)


def past_of(history: Any, name: str) -> list[dict[str, Any]]:
    """Return the messages that come before a prompt: as they are, or from [question, answer] pairs.

    >>> past_of([["1 + 1", "2"]], "history")
    [{'role': 'user', 'content': '1 + 1'}, {'role': 'assistant', 'content': '2'}]
    """
    turns = parsed(history, name) or []
    if not isinstance(turns, list):
        raise bad_conversation(f"{name} is {kind_of(turns)}, not a list of messages")
    if holds_turns(turns):
        return messages_in(turns, name)
    messages = []
    for pair in turns:
        if not isinstance(pair, list) or len(pair) != 2 or not all(isinstance(text, str) for text in pair):
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


def _in_columns(turns: Any, names: Sequence[str]) -> bool:
    """Return whether an object holds lists of roles and contents, as `datasets` stores sequences of objects."""
    if not isinstance(turns, Mapping):
        return False
    if not has_sender(turns) and not (names and turns.keys() >= set(names)):
        return False
    columns = list(turns.values())
    if not all(isinstance(values, list) for values in columns):
        return False
    return len(set(map(len, columns))) == 1


def _content_name(turn: Any) -> str:
    """Return the name of the content of a message that has a role and no `content`; "" for any other turn."""
    if not isinstance(turn, Mapping) or "role" not in turn or "content" in turn:
        return ""
    for name in _CONTENTS:
        if name in turn:
            return name
    return ""


def _pair(turn: Any, is_first: bool) -> tuple[str, str] | None:
    """Return the names of the question and the answer that an object holds; None if it holds anything else.

    Args:
        is_first: whether it is the first turn, which may also have what the system says.
    """
    if not isinstance(turn, Mapping):
        return None
    names = set(turn)
    if is_first:
        names.discard("system")
    for known in KNOWN:
        if known.prompt in names and len(names) == 2:
            answer = min(names - {known.prompt})
            if answer in known.turns:
                return known.prompt, answer
    return None
