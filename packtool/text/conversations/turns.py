"""Turn lists of turns of other forms into messages: strings in turn, a question and its answer in one object, and
messages as interfaces other than OpenAI's write them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_PAIRS = (
    ("human", "assistant"),
    ("human", "bot"),
    ("user", "assistant"),
    ("user", "bot"),
    ("input", "output"),
    ("question", "answer"),
    ("prompt", "response"),
    ("query", "response"),
    ("instruction", "output"),
)
"""Names of a question and its answer in one object."""
_CONTENTS = ("parts", "message", "text")
"""Names of the content of a message with a role, in Gemini's form, Cohere's, and others."""


def holds_turns(value: Any) -> bool:
    """Return whether a value looks like a conversation: a list of objects with roles, or of questions and answers.

    >>> holds_turns([{"role": "user", "content": "Hi"}]), holds_turns([{"input": "Hi", "output": "Ho"}])
    (True, True)
    >>> holds_turns(["Hi", "Ho"]), holds_turns([{"id": 1}])
    (False, False)
    """
    if _in_columns(value):
        return True
    if not isinstance(value, list) or not value:
        return False
    first = value[0]
    return has_sender(first) or _content(first) != "" or _pair(first, is_first=True) is not None


def holds_text(value: Any) -> bool:
    """Return whether a value may be a prompt or an answer: a text, or messages."""
    return isinstance(value, str) or holds_turns(value)


def has_sender(turn: Any) -> bool:
    """Return whether a value is a message, by the names of its fields."""
    return isinstance(turn, Mapping) and ({"role", "content"} <= turn.keys() or {"from", "value"} <= turn.keys())


def messages_of(turns: Any) -> Any:
    """Return turns of other forms as messages; anything else as it is, to be judged where messages are read.

    >>> messages_of(["Hi", "Ho"])
    [{'role': 'user', 'content': 'Hi'}, {'role': 'assistant', 'content': 'Ho'}]
    >>> messages_of([{"input": "1 + 1", "output": "2"}])
    [{'role': 'user', 'content': '1 + 1'}, {'role': 'assistant', 'content': '2'}]
    >>> messages_of([{"role": "model", "parts": [{"text": "Hi"}]}])
    [{'role': 'assistant', 'content': [{'text': 'Hi'}]}]
    """
    if _in_columns(turns):
        rows = zip(*turns.values(), strict=True)
        turns = [dict(zip(turns, row, strict=True)) for row in rows]
    if not isinstance(turns, list) or not turns:
        return turns
    if all(isinstance(turn, str) for turn in turns):
        return _in_turn(turns)
    if _content(turns[0]):
        return list(map(_with_content, turns))
    return _questions_and_answers(turns)


def _in_turn(texts: Sequence[str]) -> list[dict[str, Any]]:
    """Return texts as messages: the user begins, and the assistant answers."""
    messages = []
    for number, text in enumerate(texts):
        messages.append({"role": ("user", "assistant")[number % 2], "content": text})
    return messages


def _questions_and_answers(turns: Sequence[Any]) -> Any:
    """Return questions and answers as messages; the turns as they are if one of them is anything else."""
    messages: list[dict[str, Any]] = []
    for turn in turns:
        pair = _pair(turn, is_first=not messages)
        if pair is None:
            return turns
        if turn.get("system"):
            messages.append({"role": "system", "content": turn["system"]})
        question, answer = pair
        messages.append({"role": "user", "content": turn[question]})
        messages.append({"role": "assistant", "content": turn[answer]})
    return messages


def joined(value: Any) -> Any:
    """Return the text in parts, as Anthropic, Bedrock and Gemini write a system, Mistral a thought; else the value.

    >>> joined([{"text": "Be brief."}]), joined({"parts": [{"text": "Be "}, {"text": "brief."}]})
    ('Be brief.', 'Be brief.')
    """
    parts = value
    if isinstance(value, Mapping):
        parts = value.get("parts")
    if not isinstance(parts, list):
        return value
    texts = []
    for part in parts:
        if not isinstance(part, Mapping) or part.get("type", "text") != "text" or not isinstance(part.get("text"), str):
            return value
        texts.append(part["text"])
    return "".join(texts)


def _in_columns(turns: Any) -> bool:
    """Return whether an object holds lists of roles and contents, as `datasets` stores sequences of objects."""
    if not has_sender(turns):
        return False
    columns = list(turns.values())
    if not all(isinstance(values, list) for values in columns):
        return False
    return len(set(map(len, columns))) == 1


def _content(turn: Any) -> str:
    """Return the name of the content of a message that has a role and no `content`; "" for any other turn."""
    if not isinstance(turn, Mapping) or "role" not in turn or "content" in turn:
        return ""
    for name in _CONTENTS:
        if name in turn:
            return name
    return ""


def _with_content(turn: Any) -> Any:
    """Return a message with its content under that name; Gemini's model is the assistant."""
    name = _content(turn)
    if not name:
        return turn
    message = {key: value for key, value in turn.items() if key != name}
    if name == "parts" and message["role"] == "model":
        message["role"] = "assistant"
    message["content"] = turn[name]
    return message


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
    for pair in _PAIRS:
        if names == set(pair):
            return pair
    return None
