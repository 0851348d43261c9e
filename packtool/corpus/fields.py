"""Which fields of a record are read: the text, or token ids in its place, and the scalars that are kept beside it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

import msgspec

_SCALAR = str | int | float | bool | None


class Fields(msgspec.Struct, frozen=True):
    """The fields of a record that are read; dots go down into objects.

    Attributes:
        text: what is tokenized.
        ids: it holds a list of token ids.
        columns: scalars that are kept.
        required: the one of them that no record may lack; "" for none.
    """

    text: str = "text"
    ids: bool = False
    columns: tuple[str, ...] = ()
    required: str = ""


class UnusableFieldError(Exception):
    """A field that can't be used; its arguments are a code of REASONS and why, in words."""


class Literal(str):
    """A number as JSON has it."""


def scalar(value: Any, name: str) -> str | None:
    """A scalar as it is kept: text as it is, other values as JSON writes them.

    Raises:
        UnusableFieldError: it is no scalar.

    >>> scalar("a", "x"), scalar(3, "x"), scalar(0.5, "x"), scalar(True, "x"), scalar(None, "x")
    ('a', '3', '0.5', 'true', None)
    """
    if value is None:
        return None
    if isinstance(value, Literal):
        return str(int(value)) if len(value) < 1000 else str(value)
    if isinstance(value, str):
        return value
    if isinstance(value, bool | int | float):
        return json.dumps(value)
    if isinstance(value, list | tuple | dict):
        kind = "an object" if isinstance(value, dict) else "an array"
        raise UnusableFieldError("bad-field", f"field {name!r} is {kind}, not a scalar")
    return str(value)


def record_type(fields: Fields) -> tuple[Any, list[Callable[[Any], Any]]] | None:
    """A msgspec type for objects with these fields, and what gets each of them, the text first.

    None where a field lies inside another one: then every record takes the slow way.
    """
    tree: dict[str, Any] = {}
    paths = [fields.text.split("."), *(column.split(".") for column in fields.columns)]
    for number, path in enumerate(paths):
        node = tree
        for part in path[:-1]:
            node = node.setdefault(part, {})
            if not isinstance(node, dict):
                return None
        if path[-1] in node:
            return None
        node[path[-1]] = number
    kind, _ = _struct(tree, list[int] if fields.ids else str)
    return kind, [_getter(tree, path) for path in paths]


def _struct(tree: dict[str, Any], text: Any) -> tuple[Any, bool]:
    """The type of objects of one level, and whether the text is among their fields."""
    members: list[Any] = []
    has_text = False
    for number, node in enumerate(tree.values()):
        if isinstance(node, dict):
            inner, needed = _struct(node, text)
            members.append((f"f{number}", inner) if needed else (f"f{number}", inner | None, None))
            has_text |= needed
        elif node == 0:
            members.append((f"f{number}", text))
            has_text = True
        else:
            members.append((f"f{number}", _SCALAR, None))
    rename = {f"f{number}": name for number, name in enumerate(tree)}
    members.sort(key=len)  # what is required comes first
    return msgspec.defstruct("Record", members, rename=rename), has_text


def _getter(tree: dict[str, Any], path: Sequence[str]) -> Callable[[Any], Any]:
    names = []
    node: Any = tree
    for part in path:
        names.append(f"f{list(node).index(part)}")
        node = node[part]
    if len(names) == 1 or node == 0:
        return attrgetter(".".join(names))

    def get(record: Any) -> Any:
        for name in names:
            record = getattr(record, name)
            if record is None:
                return None
        return record

    return get
