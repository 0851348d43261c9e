"""Read values that come from a file or from a mapping in Python: of the right kind, or refused with their place."""

from __future__ import annotations

import os
from typing import Any

from packtool.errors import UsageError
from packtool.options.kinds import Kind, shown


def read_value(kind: Kind, name: str, value: Any, where: str) -> Any:
    """Return a value as its kind has it.

    Args:
        kind: of the value.
        name: of the value, for messages.
        value: as `tomllib` gives it; in Python a path may be a `Path`.
        where: the value was written, as ``file:line``.

    Raises:
        UsageError: `bad-type`: it is of another kind, or out of range; or what its kind says of it.

    >>> from packtool.options.kinds import AMOUNT
    >>> read_value(AMOUNT, "tokens", "2k", "a.toml:3")
    2000
    >>> read_value(AMOUNT, "tokens", 1.5, "a.toml:3")
    Traceback (most recent call last):
    packtool.errors.UsageError: a.toml:3: tokens can't be 1.5. Give a number, such as 300B, 5M or 1000000.
    """
    from packtool.support.decoding import from_plain  # msgspec, of which --help needs nothing

    try:
        return kind.parse(from_plain(_paths_as_texts(value), kind.in_file))
    except UsageError as error:
        raise UsageError(error.code, f"{name}: {error.what}", remedy=error.remedy, where=where) from None
    except (ValueError, OverflowError):
        as_in_toml = str(value).lower() if isinstance(value, bool) else shown(value)
        what = f"{name} can't be {as_in_toml}"
        raise UsageError("bad-type", what, remedy=f"give {kind.words}", where=where) from None


def _paths_as_texts(value: Any) -> Any:
    """Return paths as texts."""
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, list | tuple):
        return list(map(_paths_as_texts, value))
    return value
