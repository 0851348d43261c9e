"""The fields of a record to read: its text, or token ids in its place, and the scalars kept beside it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any

import msgspec

_SCALAR = str | int | float | bool | None
CONVERSATION = ("messages", "conversations", "prompt", "completion")
"""Fields that hold conversations, where none is named."""
TOOLS = "tools"


class Fields(msgspec.Struct, frozen=True):
    """The fields of a record that are read; dots go down into objects.

    Attributes:
        text: what is tokenized; of conversations the field that holds them, or "" for those of `CONVERSATION` that a
            record has.
        ids: it holds a list of token ids.
        chat: it holds a conversation: documents are mappings with what `packtool.conversations` reads.
        columns: scalars that are kept.
        required: the one of them that no record may lack; "" for none.
    """

    text: str = "text"
    ids: bool = False
    columns: tuple[str, ...] = ()
    required: str = ""
    chat: bool = False

    @property
    def document(self) -> tuple[str, ...]:
        """The fields that make a document."""
        if not self.chat:
            return (self.text,)
        return (*((self.text,) if self.text else CONVERSATION), TOOLS)

    def conversation(self, values: Mapping[str, Any]) -> dict[str, Any] | None:
        """Extract the conversation of a record; None if it has none.

        Args:
            values: the values of `document`, whichever the record has.

        >>> Fields("chat", chat=True).conversation({"chat": [{"role": "user"}], "tools": None})
        {'messages': [{'role': 'user'}]}
        """
        held = {name: value for name, value in values.items() if value is not None}
        if self.text and self.text in held:
            held["messages"] = held.pop(self.text)
        return None if held.keys().isdisjoint(CONVERSATION) else held


def no_conversation(fields: Fields) -> str:
    """Say which fields a record lacks to hold a conversation.

    >>> no_conversation(Fields("", chat=True))
    'no conversation: neither messages, conversations, nor prompt and completion'
    """
    named = f"no field {fields.text!r} with a conversation"
    return named if fields.text else "no conversation: neither messages, conversations, nor prompt and completion"


class UnusableFieldError(Exception):
    """A field that can't be used; its arguments are a code of REASONS and why, in words."""


class Literal(str):
    """A number as JSON has it."""


def scalar(value: Any, name: str) -> str | None:
    """Return a scalar as it is stored: text unchanged, other values as JSON writes them.

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
    """Make a msgspec type for objects with these fields, and list what gets each of them, the text first.

    None where a field lies inside another one: then every record takes the slow way.
    """
    if fields.chat:
        return _conversation_type(fields)
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


def _conversation_type(fields: Fields) -> tuple[Any, list[Callable[[Any], Any]]] | None:
    names = (*fields.document, *fields.columns)
    if len(set(names)) < len(names) or any("." in name for name in names):
        return None
    inner = [(f"f{number}", Any if name in fields.document else _SCALAR, None) for number, name in enumerate(names)]
    kind = msgspec.defstruct("Record", inner, rename={f"f{number}": name for number, name in enumerate(names)})
    document = fields.document
    first = len(document)
    values = attrgetter(*(f"f{number}" for number in range(first)))

    def conversation(record: Any) -> dict[str, Any] | None:
        return fields.conversation(dict(zip(document, values(record), strict=True)))

    return kind, [conversation, *(attrgetter(f"f{first + number}") for number in range(len(fields.columns)))]


def _struct(tree: dict[str, Any], text: Any) -> tuple[Any, bool]:
    """Make the type of objects of one level, and tell whether the text is among their fields."""
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
