"""The command line that was typed, for messages that tell how to go on."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from contextvars import ContextVar

_typed: ContextVar[tuple[str, ...]] = ContextVar("typed", default=())


def remember(arguments: Sequence[str]) -> None:
    """Keep the arguments of this process."""
    _typed.set(tuple(arguments))


def typed() -> str:
    """The command as it was typed; empty in a Python program.

    >>> remember(["pack", "my store", "-o", "packed"])
    >>> typed()
    "packtool pack 'my store' -o packed"
    """
    return shlex.join(("packtool", *_typed.get())) if _typed.get() else ""
