"""Find texts on which two encoders may differ because they follow different versions of Unicode.

A pattern such as `\\p{L}+` finds a new letter only where the library knows it, and a new mark is moved by NFC only
where it is known. So texts with characters that are too new go to the reference. Which these are does not depend on the
machine: `assets/unicode.json` lists what Unicode 16 leaves unassigned (`tokenizers` from 0.22 on knows the rest,
gigatoken is newer), which characters the NFC of `tokenizers`, older than its patterns, does not move or compose, and
which ones it takes for punctuation.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from packtool.support.decoding import from_json

CodeTable = np.ndarray[Any, np.dtype[np.bool_]]
"""For every code point, whether it is in a set."""

# Names of the sets for a tokenizer that splits by character class; that also applies NFC; whose patterns PCRE2 matches.
PATTERNS, NFC, PCRE = ("unassigned",), ("unassigned", "new_marks"), ("pcre_spaces",)

_NEARLY_ASCII = 1.25  # bytes a character: below it, about one character in six is beyond ASCII, or fewer are


@functools.cache
def table(*names: str) -> CodeTable:
    """Read the union of sets of code points in `assets/unicode.json`.

    >>> bool(table("unassigned")[0x1AD1]), bool(table("unassigned")[0x41])
    (True, False)
    """
    codes = np.zeros(0x110000, np.bool_)
    for name in names:
        for low, high in _spans(name):
            codes[int(low, 16) : int(high, 16) + 1] = True
    return codes


def pattern(name: str) -> str:
    """Return a regular expression for any character of a set, the same in all versions of Unicode.

    >>> pattern("pcre_spaces")
    '[\\\\x{180e}-\\\\x{180e}]'
    """
    return "[" + "".join(f"\\x{{{low}}}-\\x{{{high}}}" for low, high in _spans(name)) + "]"


def _spans(name: str) -> Iterator[tuple[str, str]]:
    """Yield the ranges of a set of `assets/unicode.json`, both ends in hexadecimal and included."""
    data = (Path(__file__).parents[2] / "assets" / "unicode.json").read_bytes()
    for span in from_json(data, dict[str, Any])[name]:
        low, _, high = span.partition("-")
        yield low, high or low


def having(codes: CodeTable, texts: Sequence[str], utf8: Sequence[bytes]) -> list[bool]:
    """Return for each text whether it has a character of a set, in which there is no ASCII.

    ASCII texts are passed first (Python knows which they are), and a batch is looked at as a whole before its texts.

    Args:
        codes: the set.
        texts: which may not hold lone surrogates.
        utf8: the same texts, as bytes.

    >>> texts = ["plain", "caf\\u00e9 \\u65e5\\u672c", "\\u1ad1's"]
    >>> having(table(*PATTERNS), texts, [text.encode() for text in texts])
    [False, False, True]
    """
    others = [pair for pair in zip(texts, utf8, strict=True) if not pair[0].isascii()]
    if not _have(codes, others):
        return [False] * len(texts)
    return [not text.isascii() and _have(codes, [(text, data)]) for text, data in zip(texts, utf8, strict=True)]


def _have(codes: CodeTable, pairs: Sequence[tuple[str, bytes]]) -> bool:
    """Return whether any of these texts, given with their UTF-8, has a character of a set."""
    if not pairs:
        return False
    texts, utf8 = zip(*pairs, strict=True)
    text = "".join(texts)
    # Few characters of most texts are beyond ASCII. To look at their bytes alone takes a third of the time.
    if sum(map(len, utf8)) < _NEARLY_ASCII * len(text):
        data = np.frombuffer(b"".join(utf8), np.uint8)
        text = data[data > 0x7F].tobytes().decode()
    points = np.frombuffer(text.encode("utf-32-le"), np.uint32)
    return bool(codes.take(points).any())
