"""Values of Python's records, as JSON has them."""

from __future__ import annotations

from typing import Any

from packtool.errors import UsageError


def plain(value: Any) -> Any:
    """Return a value that JSON may have: a list of an array of NumPy, a number of a scalar, text of bytes.

    Raises:
        UsageError: bytes that are no text.

    >>> import numpy as np
    >>> plain(np.array([1, 2])), plain(np.int64(3)), plain(b"abc"), plain({"a": 1})
    ([1, 2], 3, 'abc', {'a': 1})
    """
    if value is None or isinstance(value, str | int | float | list | dict):
        return value
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            what, remedy = "a record holds bytes that are not UTF-8", "decode them"
            raise UsageError("bad-records", what, remedy=remedy, where="inputs") from None
    return str(value)
