"""Make the document of a record from the values of its fields, whatever file they are from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from packtool.text.corpus.records import Fields, Literal, UnusableFieldError, no_conversation, scalar
from packtool.text.corpus.token_columns import said

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
_LARGEST_ID = 20
"""Digits of a number that can be no token id."""


def document_of(fields: Fields, values: Mapping[str, Any], known: Iterable[str]) -> Any:
    """Return the document of a record: a text, a list of ids, or a mapping with a conversation.

    Args:
        values: of those of `fields.document` that the record has.
        known: names of all its fields, for messages.

    Raises:
        UnusableFieldError: the record has none, or it is something else.

    >>> document_of(Fields("body"), {"body": "words"}, ["id", "body"])
    'words'
    """
    if fields.chat:
        if (conversation := fields.conversation(values)) is None:
            raise UnusableFieldError("missing-text", f"{no_conversation(fields)}; {listed(known)}")
        return conversation
    if fields.ids:
        ids = _ids(values, fields.text, known)
        for name in fields.beside:
            _require_nothing_more(name, values.get(name), ids)
        return ids
    return _text(values, fields.text, known)


def scalars_of(fields: Fields, values: Mapping[str, Any], known: Iterable[str]) -> list[str | None]:
    """Return the scalars of a record that are kept with its document, None for what it lacks.

    Args:
        values: of those of `fields.columns` that the record has.
        known: names of all its fields, for messages.

    Raises:
        UnusableFieldError: one is not a scalar, or is required and not there.
    """
    kept: list[str | None] = []
    for name in fields.columns:
        value = scalar(values.get(name), name)
        if value is None and name == fields.required:
            raise UnusableFieldError("bad-field", f"no field {name!r}; {listed(known)}")
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
    """List the fields that there are, for those who looked for another.

    >>> listed(["id", "body"]), listed([])
    ('there are id, body', 'there are no fields')
    """
    shown = [name[:40] for name in names]
    if not shown:
        return "there are no fields"
    return f"there are {', '.join(shown[:12])}{' and others' * (len(shown) > 12)}"


def whole(text: str, what: str) -> str:
    """Return a text that has no lone surrogates.

    Raises:
        UnusableFieldError: it has.
    """
    try:
        if not text.isascii():
            text.encode()
    except UnicodeEncodeError:
        raise UnusableFieldError("lone-surrogate", f"lone surrogate in {what}") from None
    return text


def _text(values: Mapping[str, Any], name: str, known: Iterable[str]) -> str:
    if name not in values:
        raise UnusableFieldError("missing-text", f"no text field {name!r}; {listed(known)}")
    value = values[name]
    if not isinstance(value, str) or isinstance(value, Literal):
        raise UnusableFieldError("missing-text", f"text field {name!r} is {KINDS[type(value)]}, not a string")
    return whole(value, f"text field {name!r}")


def _ids(values: Mapping[str, Any], name: str, known: Iterable[str]) -> list[int]:
    if name not in values:
        raise UnusableFieldError("missing-text", f"no field of ids {name!r}; {listed(known)}")
    value = values[name]
    if not isinstance(value, list):
        raise UnusableFieldError("bad-ids", f"field {name!r} is {KINDS[type(value)]}, not a list of token ids")
    if not all(map(_is_id, value)):
        what = f"field {name!r} holds something else than whole numbers, not a list of token ids"
        raise UnusableFieldError("bad-ids", what)
    return [int(item) for item in value]


def _require_nothing_more(name: str, value: Any, ids: list[int]) -> None:
    """Refuse a record in which another field says more of its ids."""
    if isinstance(value, list):
        value = [int(item) if isinstance(item, Literal) and len(item) < _LARGEST_ID else item for item in value]
    what = said(name.rpartition(".")[2], value, ids)
    if what:
        remedy = "packtool import obeys or explains it, --ids-only takes the ids alone"
        raise UnusableFieldError("bad-ids", f"field {name!r} says more of the ids: {what}; {remedy}")


def _is_id(item: Any) -> bool:
    return type(item) is int or (isinstance(item, Literal) and len(item) < _LARGEST_ID)
