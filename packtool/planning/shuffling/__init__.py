"""Shuffles: pure functions that decide an order, one file for each. They touch no tokens.

`permutation` draws the keys behind all of them.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from packtool.errors import UsageError

__all__ = ["METHODS", "Method", "method"]


class Method(NamedTuple):
    """One way to shuffle."""

    name: str  # the name on the command line
    source: Literal["packed", "store"]  # what it reads: a packed dataset or a token store


METHODS = {
    "atom": Method("atom", "packed"),
    "partial": Method("partial", "store"),
    "bucket": Method("bucket", "packed"),
}
"""Every shuffle by its name."""


def method(name: str) -> Method:
    """Look up a shuffle by its name.

    Raises:
        UsageError: there is no such shuffle; the message lists the names.
    """
    if name not in METHODS:
        what, remedy = f"there is no shuffle {name!r}", f"choose one of {', '.join(METHODS)}"
        raise UsageError("unknown-method", what, remedy=remedy, where="--method")
    return METHODS[name]
