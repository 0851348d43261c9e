"""Turn lists of turns without roles into messages: strings in turn, or a question and its answer in one object."""

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


def holds_turns(value: Any) -> bool:
    """Return whether a value looks like a conversation: a list of objects with roles, or of questions and answers.

    >>> holds_turns([{"role": "user", "content": "Hi"}]), holds_turns([{"input": "Hi", "output": "Ho"}])
    (True, True)
    >>> holds_turns(["Hi", "Ho"]), holds_turns([{"id": 1}])
    (False, False)
    """
    first = value[0] if isinstance(value, list) and value else None
    if not isinstance(first, Mapping):
        return False
    return has_sender(first) or _pair(first) is not None


def has_sender(turn: Any) -> bool:
    """Return whether a value is a message, by the names of its fields."""
    return isinstance(turn, Mapping) and ({"role", "content"} <= turn.keys() or {"from", "value"} <= turn.keys())


def messages_of(turns: Any) -> Any:
    """Return turns without roles as messages; anything else as it is, to be judged where messages are read.

    >>> messages_of(["Hi", "Ho"])
    [{'role': 'user', 'content': 'Hi'}, {'role': 'assistant', 'content': 'Ho'}]
    >>> messages_of([{"input": "1 + 1", "output": "2"}])
    [{'role': 'user', 'content': '1 + 1'}, {'role': 'assistant', 'content': '2'}]
    """
    if not isinstance(turns, list) or not turns:
        return turns
    if all(isinstance(turn, str) for turn in turns):
        return [_message(number % 2, turn) for number, turn in enumerate(turns)]
    messages = []
    for turn in turns:
        pair = _pair(turn)
        if pair is None:
            return turns
        messages += [_message(side, turn[name]) for side, name in enumerate(pair)]
    return messages


def _pair(turn: Any) -> tuple[str, str] | None:
    """Return the names of the question and the answer that an object holds, and nothing else."""
    if not isinstance(turn, Mapping) or len(turn) != 2:
        return None
    return next((pair for pair in _PAIRS if turn.keys() == set(pair)), None)


def _message(side: int, content: Any) -> dict[str, Any]:
    return {"role": ("user", "assistant")[side], "content": content}
