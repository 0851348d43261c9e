"""Describe a record for messages: what lies where in it, by the paths that options take."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from packtool.text.conversations.message import is_sender

_DEPTH = 4
"""Steps of the longest path that is shown."""
_SHOWN = 12
"""Most fields of an object that are looked at, and most places that are shown."""
# Numbers of JSON may come as `Literal`, which is a str: texts are asked for by their exact type.
_SHAPES = {str: "a text", bool: "true or false", int: "a number", float: "a number", type(None): "null"}


def described(record: Mapping[str, Any]) -> str:
    """List what lies where in a record.

    >>> described({"id": 1, "answers": {"text": ["So."]}, "chat": [{"role": "user", "content": "Hi"}]})
    'id (a number), answers.text (a list of texts), chat (messages)'
    >>> described({"log": [{"who": "me", "said": "Hi"}]})
    'log (a list of objects with who, said)'
    >>> described({})
    'no field'
    """
    shown = [f"{path} ({_shape(value)})" for path, value in _places(record)] or ["no field"]
    return ", ".join(shown[:_SHOWN]) + " and others" * (len(shown) > _SHOWN)


def holds_messages(value: Any) -> bool:
    """Return whether a value is a list of messages with the usual names, or may be the JSON of one.

    >>> holds_messages([{"role": "user", "content": "Hi"}]), holds_messages('[{"from": "human", "value": "Hi"}]')
    (True, True)
    >>> holds_messages(["Hi", "Ho"]), holds_messages([]), holds_messages("Hi")
    (False, False, False)
    """
    if isinstance(value, str):
        return value.lstrip()[:1] == "["
    return isinstance(value, list) and bool(value) and is_sender(value[0])


def _places(holder: Mapping[str, Any], above: str = "", depth: int = _DEPTH) -> Iterator[tuple[str, Any]]:
    """Yield the paths to what is no object in a record, and what lies there."""
    for name, value in list(holder.items())[: _SHOWN + 1]:
        path = f"{above}.{str(name)[:40]}".lstrip(".")
        if isinstance(value, Mapping) and value and depth:
            yield from _places(value, path, depth - 1)
        else:
            yield path, value


def _shape(value: Any) -> str:
    """Name the shape of a value."""
    if not isinstance(value, str) and holds_messages(value):
        return "messages"
    if not isinstance(value, list):
        return _SHAPES.get(type(value), "a number" if isinstance(value, str) else "an object")
    if not value:
        return "an empty list"
    if isinstance(value[0], Mapping):
        return f"a list of objects with {', '.join(str(name)[:40] for name in list(value[0])[:_SHOWN])}"
    inner = _SHAPES.get(type(value[0]), "a list")
    return f"a list of {inner.removeprefix('a ')}s"
