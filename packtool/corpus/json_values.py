"""Check JSON values against the types that were asked for."""

from __future__ import annotations

import codecs
import functools
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import numpy as np

from packtool.corpus.fields import Literal, UnusableFieldError

_DEPTH = 1000
"""Calls that a parser may nest; each level of JSON takes one. From Python 3.12 on parsers have a limit of their own."""
_SMALL = 1 << 18
"""Bytes that are decoded sooner than Arrow is loaded, which checks several times as fast."""


@contextmanager
def same_depth() -> Iterator[None]:
    """Allow the same depth of nesting however deep the call that reads: results must not depend on who calls."""
    before = sys.getrecursionlimit()
    depth, frame = 0, sys._getframe()
    while frame.f_back is not None:
        depth, frame = depth + 1, frame.f_back
    sys.setrecursionlimit(depth + _DEPTH)
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def require_whole(text: str, what: str) -> str:
    """Return a text that has no lone surrogates."""
    try:
        if not text.isascii():
            text.encode()
    except UnicodeEncodeError:
        raise UnusableFieldError("lone-surrogate", f"lone surrogate in {what}") from None
    return text


def ids_of(value: Any, name: str) -> list[int]:
    """Read a list of ids."""
    if isinstance(value, list) and all(isinstance(each, Literal) and len(each) < 20 for each in value):
        return [int(each) for each in value]
    what = f"is {kind_of(value)}" if not isinstance(value, list) else "holds something else than whole numbers"
    raise UnusableFieldError("bad-ids", f"field {name!r} {what}, not a list of token ids")


def is_utf8(data: bytes | bytearray | memoryview) -> bool:
    """Return whether all of it is valid UTF-8, since parsers check only the parts they need."""
    if not isinstance(data, memoryview) and data.isascii():
        return True
    if len(data) < _SMALL:
        try:
            codecs.utf_8_decode(data, "strict", True)
        except UnicodeDecodeError:
            return False
        return True
    import pyarrow as pa

    ends = pa.py_buffer(np.array([0, len(data)], np.int64))
    try:
        pa.LargeStringArray.from_buffers(1, ends, pa.py_buffer(data)).validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def ending(line: memoryview) -> int:
    """Count the bytes of the line's end."""
    tail = bytes(line[-2:])
    return 2 if tail == b"\r\n" else int(tail[-1:] == b"\n")


def fields_of(record: dict[str, Any]) -> str:
    """List the fields of a record, for those who looked for another."""
    names = [name[:40] for name in list(record)[:12]]
    return f"there are {', '.join(names)}{' and others' * (len(record) > 12)}" if names else "the object is empty"


def kind_of(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, Literal):
        return "a number"
    names = {int: "a number", float: "a number", str: "a string", list: "an array", dict: "an object"}
    return names[type(value)]


@functools.cache
def _raw_struct(field: str) -> type[Any]:
    fields = [("value", msgspec.Raw | msgspec.UnsetType, msgspec.UNSET)]
    return msgspec.defstruct("RawRecord", fields, rename={"value": field})


def raw_field(line: memoryview, path: list[str]) -> Any:
    """Return the raw JSON of a field without a copy, or None if there is none."""
    raw: Any = line
    for name in path:
        raw = msgspec.json.decode(raw, type=_raw_struct(name)).value
        if raw is msgspec.UNSET:
            return None
    return raw
