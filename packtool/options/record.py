"""Write options as a manifest records them: options on which the output depends, if given or with a default."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from packtool.options.declare import names_recorded


def recorded(arguments: object, chosen: str = "") -> dict[str, Any]:
    """Return the recorded options of a command, as a manifest has them.

    Args:
        chosen: the strategy or method; options that it does not take are left out.

    >>> from packtool.options.plans import PackOptions
    >>> recorded(PackOptions(sequence_length=64), "seamless")["max_repetition"]
    '3/10'
    >>> "atom_size" in recorded(PackOptions(sequence_length=64), "concat")
    False
    """
    return as_recorded({name: getattr(arguments, name) for name in names_recorded(type(arguments), chosen)})


def as_recorded(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options by name as a manifest has them, in JSON and exactly: a share is a fraction, as text.

    An option that is not set is left out, so that a new one changes no manifest.

    >>> from fractions import Fraction
    >>> as_recorded({"fim_rate": Fraction(1, 2), "columns": ("url",), "template_args": {"date": None}, "format": None})
    {'fim_rate': '1/2', 'columns': ['url'], 'template_args': {'date': None}}
    """
    known = {name: value for name, value in options.items() if value is not None}
    plain: dict[str, Any] = _in_json(known)
    return plain


def _in_json(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _in_json(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return list(map(_in_json, value))
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)
