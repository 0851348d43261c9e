"""Write options as a manifest records them: those that the output depends on, and that were given or have a default."""

from __future__ import annotations

from typing import Any

from packtool.options.declare import names_recorded


def recorded(arguments: object, chosen: str = "") -> dict[str, Any]:
    """Return the recorded options of a command, as values that JSON has.

    An option that is not set is left out, so that a new one changes no manifest. A share is written as a fraction.

    Args:
        chosen: the strategy or method; options that it does not take are left out.

    >>> from packtool.options.pack import PackOptions
    >>> recorded(PackOptions(sequence_length=64), "seamless")["max_repetition"]
    '3/10'
    >>> "atom_size" in recorded(PackOptions(sequence_length=64), "concat")
    False
    """
    values = {name: getattr(arguments, name) for name in names_recorded(type(arguments), chosen)}
    return {name: _plain(value) for name, value in values.items() if value is not None}


def _plain(value: Any) -> Any:
    """Return a value that JSON has, exactly: shares and other numbers that it lacks as text."""
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value if isinstance(value, bool | int | float | str) else str(value)
