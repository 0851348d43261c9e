"""Decode long JSON strings piece by piece."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

PIECE = 1 << 20
"""Bytes that are decoded at a time."""


class LongString:
    """A long JSON string, decoded piece by piece.

    Args:
        raw: the JSON string with its quotes.
    """

    def __init__(self, raw: memoryview) -> None:
        self._raw = raw

    def __iter__(self) -> Iterator[str]:
        at, end = 1, len(self._raw) - 1
        while at < end:
            cut = _cut(self._raw, at, min(at + PIECE, end), end)
            yield msgspec.json.decode(b'"' + bytes(self._raw[at:cut]) + b'"', type=str)
            at = cut


_UNITS = re.compile(
    rb"(?:[^\\]++|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u(?![dD][89abAB])[0-9a-fA-F]{4}|\\[^u])*+"
)


def _cut(raw: memoryview, at: int, limit: int, end: int) -> int:
    """Find a place up to `limit`, the last but a few, that splits neither escape, nor surrogate pair, nor character."""
    if limit == end:
        return end
    space = bytes(raw[at:limit]).rfind(b" ")  # no escape has one
    if space > 0:
        return at + space
    match = _UNITS.match(raw, at, limit)
    cut = match.end() if match else at
    while cut > at and raw[cut] & 0xC0 == 0x80:
        cut -= 1
    return cut if cut > at else end  # not JSON: let decoding say so
