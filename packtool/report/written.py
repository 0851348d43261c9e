"""Read the figures of a `report.json` that any packtool wrote: what it did not write yet is absent.

Figures follow from rows and lengths, so they have no version as files have, and a new one must not make a dataset
unreadable. An absent number is NaN, with which sums and comparisons go on. It is null in JSON and a dash in tables.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec
from msgspec import inspect

_Kind = TypeVar("_Kind")

ABSENT = math.nan
"""A number that the packtool that wrote a report did not know yet."""


def figures(given: Any, kind: type[_Kind]) -> _Kind:
    """Make figures of this type of plain data, as JSON gives it; the figures that it does not have are absent.

    Raises:
        ValueError: a figure is of another type.

    >>> from packtool.planning.metrics.neighbours import Neighbours
    >>> figures({"field": "repo", "pairs": 16}, Neighbours)
    Neighbours(field='repo', pairs=16, alike=nan, alike_share=nan)
    """
    made: _Kind = _made(given, inspect.type_info(kind))
    return made


def has_all(value: Any) -> bool:
    """Return whether no figure is absent, in the value and all that it holds."""
    if isinstance(value, float):
        return not math.isnan(value)
    if isinstance(value, list | tuple):
        return all(map(has_all, value))
    if isinstance(value, msgspec.Struct):
        return has_all(msgspec.structs.astuple(value))
    if dataclasses.is_dataclass(value):
        return all(has_all(getattr(value, field.name)) for field in dataclasses.fields(value))
    return True


def _made(given: Any, kind: inspect.Type) -> Any:
    """Make a value of a type; None stands for what is absent, too, as JSON writes NaN so."""
    make = _MAKERS.get(type(kind))
    if make is None:
        return given  # a name of several, or anything at all
    return make(given, kind)


def _optional(given: Any, kind: inspect.UnionType) -> Any:
    if given is None and kind.includes_none:
        return None
    [known] = [each for each in kind.types if not isinstance(each, inspect.NoneType)]  # figures have no other unions
    return _made(given, known)


def _record(given: Any, kind: inspect.StructType | inspect.DataclassType) -> Any:
    given = _of_type(given, dict)
    values = {}
    for field in kind.fields:
        if field.required or field.encode_name in given:
            values[field.name] = _made(given.get(field.encode_name), field.type)
    return kind.cls(**values)


def _list(given: Any, kind: inspect.ListType) -> list[Any]:
    return [_made(item, kind.item_type) for item in _of_type(given, list)]


def _dict(given: Any, kind: inspect.DictType) -> dict[str, Any]:
    return {name: _made(item, kind.value_type) for name, item in _of_type(given, dict).items()}


def _number(given: Any, kind: inspect.IntType | inspect.FloatType) -> float:
    del kind  # a number of either kind may be absent
    if given is None:
        return ABSENT
    if not isinstance(given, int | float):
        raise ValueError(f"{given!r} is not a number")
    return given


def _words(given: Any, kind: inspect.StrType) -> str:
    del kind
    return str(_of_type(given, str))


def _of_type(given: Any, kind: type) -> Any:
    """Return a value of this type, or an empty one where it is absent."""
    if given is None:
        return kind()
    if not isinstance(given, kind):
        raise ValueError(f"{given!r} is no {kind.__name__}")
    return given


_MAKERS: dict[type[inspect.Type], Callable[[Any, Any], Any]] = {
    inspect.UnionType: _optional,
    inspect.StructType: _record,
    inspect.DataclassType: _record,
    inspect.ListType: _list,
    inspect.DictType: _dict,
    inspect.IntType: _number,
    inspect.FloatType: _number,
    inspect.StrType: _words,
}
