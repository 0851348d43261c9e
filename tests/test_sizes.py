"""Sizes: exact, and refused where they are not sizes, however long."""

from __future__ import annotations

import pytest

from packtool.errors import UsageError
from packtool.sizes import parse_bytes


@pytest.mark.parametrize(
    ("text", "size"), [("1", 1), ("1.5kB", 1500), ("0.3GiB", 322122547), ("9007199254740993", 9007199254740993)]
)
def test_sizes_are_exact(text: str, size: int) -> None:
    assert parse_bytes(text) == size


@pytest.mark.parametrize("text", ["9" * 400, "9" * 5000, "0", "0.1", "1e9", "-1", "1ii", "much", "inf"])
def test_what_is_not_a_size(text: str) -> None:
    with pytest.raises(UsageError, match=r"--memory: '.{1,40}'…? is not a size\. Write it like 512MiB") as caught:
        parse_bytes(text)
    assert caught.value.code == "bad-size"
