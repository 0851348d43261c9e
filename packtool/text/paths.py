"""Follow paths into records: `a.b` is the field b of an object a, and `a[0]` the first element of a list a."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

_STEP = re.compile(r"[^.\[\]]+|\[-?\d+\]")
_PATH = re.compile(rf"[^.\[\]]+(?:\.(?:{_STEP.pattern})|\[-?\d+\])*")
MISSING = object()
"""The value of a path that leads nowhere."""


@cache
def steps(path: str) -> tuple[str | int, ...]:
    """Return the names and indices of a path; what is no path is one name.

    >>> steps("answers.text[0]"), steps("the [answer"), steps("turns[-1].text")
    (('answers', 'text', 0), ('the [answer',), ('turns', -1, 'text'))
    """
    if not _PATH.fullmatch(path):
        return (path,)
    found: list[str | int] = []
    for step in _STEP.findall(path):
        found.append(int(step[1:-1]) if step.startswith("[") else step)
    return tuple(found)


def top_of(path: str) -> str:
    """Return the name of the field in which a path begins.

    >>> top_of("answers.text[0]")
    'answers'
    """
    return str(steps(path)[0])


def value_at(record: Mapping[str, Any], path: str) -> Any:
    """Return the value of a field of the whole name, else the one that a path leads to; MISSING for neither.

    >>> value_at({"a": {"text": ["b", "c"]}}, "a.text[-1]"), value_at({"a.b": 1}, "a.b")
    ('c', 1)
    """
    if path in record:
        return record[path]
    value: Any = record
    for step in steps(path):
        if isinstance(step, str):
            leads_on = isinstance(value, Mapping) and step in value
        else:
            leads_on = isinstance(value, list) and -len(value) <= step < len(value)
        if not leads_on:
            return MISSING
        value = value[step]
    return value


def values_at(record: Mapping[str, Any], paths: Iterable[str]) -> dict[str, Any]:
    """Return the values that a record has at these paths.

    >>> values_at({"a": {"b": 1}, "c.d": None}, ["a.b", "c.d", "e"])
    {'a.b': 1, 'c.d': None}
    """
    found = {}
    for path in paths:
        value = value_at(record, path)
        if value is not MISSING:
            found[path] = value
    return found


def beside(value: Any, paths: Iterable[Sequence[str | int]], above: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the paths of what lies beside others: in the record, and in each object on the way to them.

    Args:
        paths: their steps, as `steps` gives them.
        above: the path of the value.

    >>> dict(beside({"id": 1, "data": {"turns": [], "system": "s"}}, [steps("data.turns")]))
    {'id': 1, 'data.system': 's'}
    """
    if isinstance(value, list):
        places = [(f"[{number}]", number, item) for number, item in enumerate(value)]
    else:
        places = [(f".{name}", name, item) for name, item in value.items()]
    for shown, step, item in places:
        path = f"{above}{shown}".lstrip(".")
        inner = [rest[1:] for rest in paths if rest[0] == step]
        if not inner and isinstance(value, Mapping):
            yield path, item
        elif inner and all(inner) and isinstance(item, list | Mapping):
            yield from beside(item, inner, path)
