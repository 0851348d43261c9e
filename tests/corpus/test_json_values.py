"""JSON values: UTF-8 is checked in two ways, which agree."""

from __future__ import annotations

import pytest

from packtool.corpus.json_values import is_utf8


@pytest.mark.parametrize("size", [10, 1 << 20])
@pytest.mark.parametrize(
    ("end", "valid"),
    [
        ("é".encode(), True),
        ("\U0010ffff".encode(), True),
        (b"\xc3", False),  # the character goes on
        (b"\xc0\x80", False),  # longer than need be
        (b"\xed\xa0\x80", False),  # a surrogate
        (b"\xf4\x90\x80\x80", False),  # behind the last code point
        (b"\xff", False),
    ],
)
def test_small_and_large_texts_are_checked_alike(size: int, end: bytes, valid: bool) -> None:
    data = b"a" * size + end
    assert is_utf8(data) == is_utf8(bytearray(data)) == is_utf8(memoryview(data)) == valid
