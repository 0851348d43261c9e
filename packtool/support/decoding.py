"""Decode JSON, and convert plain data, to typed values: the one place where msgspec is asked to.

msgspec notes on a class what its fields are when it first decodes one, and runs Python to find out. A second thread
that meets the class meanwhile finds it half noted, and the process ends. So a type is prepared here, once and under a
lock, before anything is decoded as it.
"""

from __future__ import annotations

import functools
import threading
from typing import Any, TypeVar, overload

import msgspec

_Content = TypeVar("_Content")
_PREPARING = threading.Lock()


@overload
def from_json(raw: bytes | str | msgspec.Raw, kind: type[_Content]) -> _Content: ...
@overload
def from_json(raw: bytes | str | msgspec.Raw, kind: Any) -> Any: ...
def from_json(raw: bytes | str | msgspec.Raw, kind: Any) -> Any:
    """Decode a value of this type from JSON.

    Raises:
        ValueError: it can't be done, with the reason.

    >>> from_json(b"[1, 2]", list[int])
    [1, 2]
    >>> from_json(b'["1"]', list[int])
    Traceback (most recent call last):
    ValueError: Expected `int`, got `str` - at `$[0]`
    """
    decoder = prepared(kind)
    try:
        return decoder.decode(raw)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise ValueError(_reason(error)) from None


@overload
def from_plain(value: Any, kind: type[_Content]) -> _Content: ...
@overload
def from_plain(value: Any, kind: Any) -> Any: ...
def from_plain(value: Any, kind: Any) -> Any:
    """Convert plain data, as a JSON or TOML file gives it, to a value of this type.

    Raises:
        ValueError: it can't be done, with the reason.
    """
    prepared(kind)
    try:
        return msgspec.convert(value, kind)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise ValueError(_reason(error)) from None


def prepared(kind: Any) -> msgspec.json.Decoder[Any]:
    """Return a decoder of values of this type, for loops that call it often; any number of threads may share it."""
    with _PREPARING:
        return _decoder(kind)


@functools.lru_cache(512)  # more types than there are; those that are made for the fields of a corpus come and go
def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind)


def _reason(error: Exception) -> str:
    if isinstance(error, UnicodeError):
        return "not UTF-8"
    if isinstance(error, RecursionError):
        return "nested too deeply"
    return str(error)
