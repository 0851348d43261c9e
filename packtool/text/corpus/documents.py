"""Make the document of a record from the values of its fields, whatever file they are from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from packtool.text.conversations.contract import reading_of
from packtool.text.conversations.message import kind_of
from packtool.text.corpus.records import Fields, Literal, scalar
from packtool.text.corpus.token_columns import said
from packtool.text.faults import Fault
from packtool.text.paths import values_at

_SEPARATOR = "\n\n"
"""Between the texts of several fields."""
_LARGEST_ID = 20
"""Digits of a number that can be no token id."""


def document_of(fields: Fields, record: Mapping[str, Any], known: Iterable[str], missing: set[str]) -> Any:
    """Return the document of a record: a text, a list of ids, or a `Conversation`.

    Args:
        record: its fields, those that are not read perhaps left out.
        known: all of it, or the names of its fields, for messages.
        missing: optional fields that no record had so far; those that this one has are taken out.

    Raises:
        Fault: the record has no document, or a value of another type.

    >>> document_of(Fields("body"), {"body": "words"}, ["id", "body"], set())
    'words'
    """
    try:
        if fields.layout is not None:
            from packtool.text.conversations.record import conversation_of  # texts do without it

            talk = conversation_of(record, fields.layout, fields.first, fields.known)
            if missing:
                missing.difference_update(talk.record)
            return talk
        values = values_at(record, (fields.text, *fields.texts))
        lacking = fields.lacking(values)
        if lacking:
            raise Fault("missing-text", lacking)
    except Fault as fault:
        if fault.code != "missing-text":
            raise
        raise Fault("missing-text", f"{fault.what}; {fields_there(known)}") from None
    if fields.by_name and not reading_of(record).text:
        raise Fault("missing-text", f"a conversation, where the first record is a text; {fields_there(known)}")
    if fields.ids:
        ids = _ids(values[fields.text], fields.text)
        _require_nothing_more(fields, record, ids)
        return ids
    if fields.text in values or not fields.texts:
        return _text(values, fields.text)
    there = [name for name in fields.texts if values.get(name) is not None]
    missing.difference_update(there)
    return _SEPARATOR.join(filter(None, map(partial(_text, values), there)))


def scalars_of(fields: Fields, record: Mapping[str, Any], known: Iterable[str]) -> list[str | None]:
    """Return the scalars of a record that are kept with its document, None for what it lacks.

    Args:
        record: its fields, those that are not read perhaps left out.
        known: names of all its fields, for messages.

    Raises:
        Fault: one is not a scalar, or is required and not there.
    """
    values = values_at(record, fields.columns)
    kept: list[str | None] = []
    for name in fields.columns:
        value = scalar(values.get(name), name)
        if value is None and name == fields.required:
            raise Fault("bad-field", f"no field {name!r}; {fields_there(known)}")
        kept.append(None if value is None else whole(value, f"field {name!r}"))
    return kept


def fields_there(names: Iterable[str]) -> str:
    """List the fields that there are, for a message about a field that is missing.

    >>> fields_there(["id", "body"]), fields_there([])
    ('there are id, body', 'there are no fields')
    """
    shown = [name[:40] if name == name.strip() else repr(name[:40]) for name in names]
    if not shown:
        return "there are no fields"
    return f"there are {', '.join(shown[:12])}{' and others' * (len(shown) > 12)}"


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
    if isinstance(value, list) and set(map(type, value)) == {str}:
        raise in_parts(name, f"jq -c '.{name} |= join(\"\\n\")'")
    if not isinstance(value, str) or isinstance(value, Literal):
        raise Fault("missing-text", f"text field {name!r} is {kind_of(value)}, not a string")
    return whole(value, f"text field {name!r}")


def in_parts(name: str, joined: str) -> Fault:
    """Return the fault of a field that has the text in parts, lines or paragraphs, with the command that joins them."""
    what = f"text field {name!r} is a list of strings, such as lines or paragraphs"
    remedy = f"join them first, here with a newline between: {joined}"
    return Fault("missing-text", what, remedy)


def _ids(value: Any, name: str) -> list[int]:
    if not isinstance(value, list):
        raise Fault("bad-ids", f"field {name!r} is {kind_of(value)}, not a list of token ids")
    if set(map(type, value)) <= {int}:
        return value
    numbers = list(map(_number_of, value))
    if set(map(type, numbers)) != {int}:
        what = f"field {name!r} holds something else than whole numbers, not a list of token ids"
        raise Fault("bad-ids", what)
    return numbers


def _number_of(item: Any) -> Any:
    """Return the number that a literal spells; anything else, and a number too long for an id, as it is."""
    if isinstance(item, Literal) and len(item) < _LARGEST_ID:
        return int(item)
    return item


def _require_nothing_more(fields: Fields, record: Mapping[str, Any], ids: list[int]) -> None:
    """Refuse a record in which another field says more of its ids."""
    names = record.keys() & fields.beside  # of a table, the values are there by their paths
    if not names and "." in fields.text:
        names = set(fields.beside)
    for name, value in sorted(values_at(record, names).items()):
        numbers = value
        if isinstance(value, list):
            numbers = list(map(_number_of, value))
        what = said(name.rpartition(".")[2], numbers, ids)
        if what:
            remedy = "packtool import obeys or explains it; with --ids-only it takes the ids alone"
            raise Fault("bad-ids", f"field {name!r} says more of the ids: {what}; {remedy}")
