"""Turn lists of turns of other forms into messages: strings in turn, a question and its answer in one object, and
messages as interfaces other than OpenAI's write them."""

from __future__ import annotations

from collections.abc import Mapping
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
    first = value[0] if isinstance(value, list) and value else None
    if _in_columns(value):
        return True
    return has_sender(first) or _content(first) != "" or _pair(first) is not None


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
        turns = [dict(zip(turns, row, strict=True)) for row in zip(*turns.values(), strict=True)]
    if not isinstance(turns, list) or not turns:
        return turns
    if all(isinstance(turn, str) for turn in turns):
        return [_message(number % 2, turn) for number, turn in enumerate(turns)]
    if _content(turns[0]):
        return list(map(_with_content, turns))
    messages = []
    system = turns[0].get("system") if isinstance(turns[0], Mapping) else None
    for number, turn in enumerate(turns):
        pair = _pair(turn, first=number == 0)
        if pair is None:
            return turns
        messages += [_message(side, turn[name]) for side, name in enumerate(pair)]
    return [{"role": "system", "content": system}, *messages] if system else messages


def joined(system: Any) -> Any:
    """Return the text of the system where it is in parts, as Anthropic, Bedrock and Gemini write it; else as it is.

    >>> joined([{"text": "Be brief."}]), joined({"parts": [{"text": "Be "}, {"text": "brief."}]})
    ('Be brief.', 'Be brief.')
    """
    parts = system.get("parts") if isinstance(system, Mapping) else system
    if not isinstance(parts, list) or not all(isinstance(part, Mapping) for part in parts):
        return system
    texts = [part.get("text") for part in parts if part.get("type", "text") == "text"]
    whole = len(texts) == len(parts) and all(isinstance(text, str) for text in texts)
    return "".join(texts) if whole else system


def _in_columns(turns: Any) -> bool:
    """Return whether an object holds lists of roles and contents, as `datasets` stores sequences of objects."""
    if not has_sender(turns):
        return False
    columns = [values for values in turns.values() if isinstance(values, list)]
    return len(columns) == len(turns) and len(set(map(len, columns))) == 1


def _content(turn: Any) -> str:
    """Return the name of the content of a message that has a role and no `content`; "" for any other turn."""
    if not isinstance(turn, Mapping) or "role" not in turn or "content" in turn:
        return ""
    return next((name for name in _CONTENTS if name in turn), "")


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


def _pair(turn: Any, *, first: bool = True) -> tuple[str, str] | None:
    """Return the names of the question and the answer that an object holds, and nothing else.

    Args:
        first: it is the first turn, which may also say what the system says.
    """
    if not isinstance(turn, Mapping):
        return None
    names = {name for name in turn if name != "system" or not first}
    return next((pair for pair in _PAIRS if names == set(pair)), None)


def _message(side: int, content: Any) -> dict[str, Any]:
    return {"role": ("user", "assistant")[side], "content": content}
