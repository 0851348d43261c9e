"""The shuffles by their names."""

from __future__ import annotations

import pytest

from packtool import shuffling
from packtool.errors import UsageError


def test_an_unknown_method() -> None:
    with pytest.raises(UsageError, match=r"there is no shuffle 'riffle'\. Choose one of atom, partial, bucket."):
        shuffling.method("riffle")
