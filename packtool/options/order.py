"""The order of documents that `--order-by` asks for: the fields that decide it, and how each is read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from packtool.errors import UsageError
from packtool.options.kinds import FIELDS, Kind, kept_field, shown


@dataclass(frozen=True)
class OrderKey:
    """A field that orders documents."""

    field: str  # name of the field
    number: bool  # its values are ordered as numbers, else as text, by code points
    descending: bool  # the largest comes first; documents without a value are last either way


def order_keys(written: Iterable[str]) -> list[OrderKey]:
    """Read the keys of an order, the first of which decides first.

    >>> order_keys(["repo", "-size:number"])
    [OrderKey(field='repo', number=False, descending=False), OrderKey(field='size', number=True, descending=True)]
    """
    keys = []
    for text in written:
        try:
            field = kept_field(text.removeprefix("-"))
        except ValueError:
            remedy = "name fields that the stores keep, such as repo,-date,size:number"
            raise UsageError("bad-option", f"{shown(text)} names no field", remedy=remedy) from None
        keys.append(OrderKey(field.name, field.number, descending=text.startswith("-")))
    return keys


def _parse(value: Any) -> Sequence[str]:
    written: list[str] = FIELDS.parse(value)
    named: set[str] = set()
    for key in order_keys(written):
        if key.field in named:
            remedy = "name each field once: documents that are alike in it stay alike"
            raise UsageError("bad-option", f"{shown(key.field)} is named twice", remedy=remedy)
        named.add(key.field)
    return written


ORDER = Kind("a list of fields, such as repo,-date,size:number", "FIELD,...", list[str] | str, _parse, many=True)
