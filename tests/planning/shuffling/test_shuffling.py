"""The shuffles by their names."""

from __future__ import annotations

import pytest

from packtool.errors import UsageError
from packtool.planning import shuffling


def test_an_unknown_method() -> None:
    with pytest.raises(UsageError, match=r"there is no shuffle 'riffle'\. Choose one of atom, partial, bucket."):
        shuffling.method("riffle")
