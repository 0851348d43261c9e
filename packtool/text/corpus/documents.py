"""Make the document of a record from the values of its fields, whatever file they are from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from packtool.formats.fields import BESIDE, CONVERSATION, SYSTEM
from packtool.text.conversations.turns import holds_turns, joined, messages_of
from packtool.text.corpus.layouts import FieldLayout
from packtool.text.corpus.records import Fields, Literal, scalar
from packtool.text.corpus.token_columns import said
from packtool.text.faults import Fault

KINDS = {
    type(None): "null",
    bool: "true or false",
    int: "a number",
    float: "a number",
    Literal: "a number",
    str: "a string",
    list: "an array",
    dict: "an object",
}
"""What JSON calls the values that Python has."""
_MISSING = object()
_SEPARATOR = "\n\n"
"""Between the texts of several fields."""
_LARGEST_ID = 20
"""Digits of a number that can be no token id."""


def document_of(fields: Fields, values: Mapping[str, Any], known: Iterable[str]) -> Any:
    """Return the document of a record: a text, a list of ids, or a mapping with a conversation.

    Args:
        values: of the fields among `fields.document` that the record has.
        known: names of all its fields, for messages.

    Raises:
        Fault: the record has no document, or a value of another type.

    >>> document_of(Fields("body"), {"body": "words"}, ["id", "body"])
    'words'
    """
    held = {name: value for name, value in values.items() if value is not None} if fields.chat else values
    lacking = fields.lacking(held)
    if lacking:
        raise Fault("missing-text", f"{lacking}; {listed(known)}{_inside(known)}")
    if fields.layout is not None:
        return _answered(fields.layout, held, known)
    if fields.chat:
        return _renamed(held, fields.text)
    if fields.ids:
        ids = _ids(values[fields.text], fields.text)
        for name in fields.beside:
            _require_nothing_more(name, values.get(name), ids)
        return ids
    if fields.text in values or not fields.texts:
        return _text(values, fields.text)
    return _SEPARATOR.join(filter(None, [_text(values, name) for name in fields.texts if values.get(name) is not None]))


def _renamed(values: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the fields of a conversation, with the one that was named called messages."""
    renamed = dict(values)
    if name in renamed:
        renamed["messages"] = renamed.pop(name)
    for field in CONVERSATION[:2]:
        if field in renamed:
            renamed[field] = messages_of(renamed[field])
    _join_system(renamed)
    return renamed


def _join_system(record: dict[str, Any]) -> None:
    """Make one text of what the system says in parts."""
    for name in SYSTEM:
        if name in record:
            record[name] = joined(record[name])


def _answered(layout: FieldLayout, values: Mapping[str, Any], known: Iterable[str]) -> dict[str, Any]:
    """Return a prompt and its answer as the fields of a conversation.

    Raises:
        Fault: one of them is empty.

    >>> _answered(FieldLayout(("q", "input"), "a"), {"q": "Add.", "input": "1 + 1", "a": "2"}, [])
    {'prompt': 'Add.\\n1 + 1', 'completion': '2'}
    """
    prompt = [values[name] for name in layout.prompt if values.get(name)]
    if not prompt or not values[layout.completion]:
        names = repr(layout.completion) if prompt else " and ".join(map(repr, layout.prompt))
        raise Fault("missing-text", f"nothing in {names}; {listed(known)}")
    found = {name: values[name] for name in BESIDE if name in values and name not in layout.fields}
    for name, field in (("system", layout.system), ("history", layout.history)):
        if field in values:
            found[name] = values[field]
    if len(prompt) > 1 and not all(isinstance(text, str) for text in prompt):
        raise Fault("bad-field", f"fields {', '.join(layout.prompt)} are not all strings, to be joined")
    found["prompt"] = "\n".join(prompt) if len(prompt) > 1 else prompt[0]
    found["completion"] = values[layout.completion]
    _join_system(found)
    return found


def scalars_of(fields: Fields, values: Mapping[str, Any], known: Iterable[str]) -> list[str | None]:
    """Return the scalars of a record that are kept with its document, None for what it lacks.

    Args:
        values: of the fields among `fields.columns` that the record has.
        known: names of all its fields, for messages.

    Raises:
        Fault: one is not a scalar, or is required and not there.
    """
    kept: list[str | None] = []
    for name in fields.columns:
        value = scalar(values.get(name), name)
        if value is None and name == fields.required:
            raise Fault("bad-field", f"no field {name!r}; {listed(known)}")
        kept.append(None if value is None else whole(value, f"field {name!r}"))
    return kept


def values_at(record: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Return the values of the fields that a record has: by their path into objects, or by their dotted name.

    >>> values_at({"a": {"b": 1}, "c.d": None}, ["a.b", "c.d", "e"])
    {'a.b': 1, 'c.d': None}
    """
    found = {}
    for name in names:
        value: Any = record
        for part in name.split("."):
            if not isinstance(value, Mapping) or part not in value:
                value = record.get(name, _MISSING)
                break
            value = value[part]
        if value is not _MISSING:
            found[name] = value
    return found


def listed(names: Iterable[str]) -> str:
    """List the fields that there are, for a message about a field that is missing.

    >>> listed(["id", "body"]), listed([])
    ('there are id, body', 'there are no fields')
    """
    shown = [name[:40] if name == name.strip() else repr(name[:40]) for name in names]
    if not shown:
        return "there are no fields"
    return f"there are {', '.join(shown[:12])}{' and others' * (len(shown) > 12)}"


def _inside(record: Iterable[str]) -> str:
    """Say where in a record others, or a conversation, may lie; "" if nothing looks like it.

    >>> _inside({"version": 1, "data": [{"text": "a"}]})
    "; data is a list of objects: jq -c '.data[]' makes records of them"
    """
    for name, value in record.items() if isinstance(record, Mapping) else ():
        if holds_turns(value):
            return f"; {name} looks like a conversation: --conversations {name}"
        if isinstance(value, list) and value and isinstance(value[0], Mapping):
            return f"; {name} is a list of objects: jq -c '.{name}[]' makes records of them"
    return ""


def whole(text: str, what: str) -> str:
    """Return a text that has no lone surrogates.

    Raises:
        Fault: it has.
    """
    try:
        if not text.isascii():
            text.encode()
    except UnicodeEncodeError:
        raise Fault("lone-surrogate", f"lone surrogate in {what}") from None
    return text


def _text(values: Mapping[str, Any], name: str) -> str:
    value = values[name]
    if not isinstance(value, str) or isinstance(value, Literal):
        raise Fault("missing-text", f"text field {name!r} is {KINDS[type(value)]}, not a string")
    return whole(value, f"text field {name!r}")


def _ids(value: Any, name: str) -> list[int]:
    if not isinstance(value, list):
        raise Fault("bad-ids", f"field {name!r} is {KINDS[type(value)]}, not a list of token ids")
    if not set(map(type, value)) <= {int} and not all(map(_is_id, value)):
        what = f"field {name!r} holds something else than whole numbers, not a list of token ids"
        raise Fault("bad-ids", what)
    return list(map(int, value))


def _number_of(item: Any) -> Any:
    """Return the number that a literal spells; anything else, and a number too long for an id, as it is."""
    if isinstance(item, Literal) and len(item) < _LARGEST_ID:
        return int(item)
    return item


def _require_nothing_more(name: str, value: Any, ids: list[int]) -> None:
    """Refuse a record in which another field says more of its ids."""
    if isinstance(value, list):
        value = list(map(_number_of, value))
    what = said(name.rpartition(".")[2], value, ids)
    if what:
        remedy = "packtool import obeys or explains it, --ids-only takes the ids alone"
        raise Fault("bad-ids", f"field {name!r} says more of the ids: {what}; {remedy}")


def _is_id(item: Any) -> bool:
    return type(item) is int or (isinstance(item, Literal) and len(item) < _LARGEST_ID)
