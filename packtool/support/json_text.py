"""Write values as JSON, also names of files whose bytes are not UTF-8, which no JSON holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec


def to_json(value: Any, hook: Callable[[Any], Any] | None = None) -> bytes:
    """Encode a value as compact JSON; bytes of names that are not UTF-8 have backslashes in it.

    Args:
        hook: returns what stands for a value that JSON does not have.

    >>> to_json(["a", "b\\udcff"])
    b'["a","b\\\\\\\\xff"]'
    """
    try:
        return msgspec.json.encode(value, enc_hook=hook)
    except UnicodeEncodeError:
        return msgspec.json.encode(_as_text(msgspec.to_builtins(value, enc_hook=hook)))


def in_utf8(text: str) -> str:
    """Return a text that UTF-8 can hold: of bytes of a name those that it can, the others with backslashes.

    In a locale of ASCII alone, Python takes the bytes of any other character for such bytes.

    >>> in_utf8("b\\udcff"), in_utf8("\\udcc3\\udcb6")
    ('b\\\\xff', 'ö')
    """
    try:
        return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    except UnicodeEncodeError:  # no file's name, but half of a pair, as JSON may have it
        return text.encode("utf-8", "backslashreplace").decode()


def _as_text(value: Any) -> Any:
    if isinstance(value, dict):
        return {_as_text(name): _as_text(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return list(map(_as_text, value))
    if isinstance(value, str):
        return in_utf8(value)
    return value
