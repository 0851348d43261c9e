"""Tell text in UTF-16 and UTF-32 that has no mark, and numbers, from text in UTF-8."""

from __future__ import annotations

import codecs
import unicodedata
from collections import Counter

import numpy as np

_FEWEST = 6
"""Characters, or numbers, from which one can tell."""
_MOST = 2000
"""Characters that are looked at."""
_LARGEST = 1 << 20
"""More than any token id."""
_OF_JAPANESE = ("CJK", "HIRAGANA", "KATAKANA", "IDEOGRAPHIC", "FULLWIDTH")
"""First words of the names of characters that stand in one text."""
_NARROW = ("shift_jis", "euc_jp", "gb18030", "big5", "euc_kr")
"""Encodings whose pairs of bytes may be characters of UTF-16, too."""
_NO_TEXT = ("Cc", "Cn", "Co", "Cs")
"""Unicode categories that no text contains, newlines and tabs aside; token ids read as text soon contain one."""


def wide_text(head: bytes) -> str:
    """Return utf-16 or utf-32 if a file with these first bytes is such a text; "" for any other.

    >>> wide_text("some words".encode("utf-16-le")), wide_text("中文\\n第二行.".encode("utf-16-be")), wide_text(b"a")
    ('utf-16', 'utf-16', '')
    """
    if _is_ascii_mostly(head):
        return ""
    if b"\0" not in head and any(decoded(head, narrow) is not None for narrow in _NARROW):
        return ""
    for encoding, size in (("utf-32-le", 4), ("utf-32-be", 4), ("utf-16-le", 2), ("utf-16-be", 2)):
        text = decoded(head[: len(head) // size * size], encoding)
        if text is not None and _is_of_one_script(text[:_MOST]):
            return encoding[:6]
    return ""


def decoded(head: bytes, encoding: str) -> str | None:
    """Return the text of the first bytes of a file, perhaps up to a part of a character; None in another encoding.

    >>> decoded("été".encode()[:-1], "utf-8"), decoded("été".encode("latin-1"), "utf-8")
    ('ét', None)
    """
    try:
        return codecs.getincrementaldecoder(encoding)().decode(head)
    except UnicodeDecodeError:
        return None


def _is_of_one_script(text: str) -> bool:
    """Return whether a text has characters alone, and most of those beyond ASCII are of one script."""
    scripts: Counter[str] = Counter()
    for character in text:
        if unicodedata.category(character) in _NO_TEXT and character not in "\t\n\r\f":
            return False
        script = unicodedata.name(character, "").partition(" ")[0]
        if not character.isascii():
            scripts["CJK" if script in _OF_JAPANESE else script] += 1
    return len(text) >= _FEWEST and max(scripts.values(), default=0) >= 0.6 * scripts.total()


def _is_ascii_mostly(head: bytes) -> bool:
    """Return whether most bytes are printable in ASCII: pairs of such bytes would be characters of CJK."""
    values = np.frombuffer(head, np.uint8)
    return bool(np.mean((values >= 0x20) & (values < 0x7F)) > 0.75)


def numbers(head: bytes) -> int:
    """Return the width in bits of the numbers in a file that begins with these bytes, such as token ids; 0 if it seems
    to hold something else.

    >>> numbers(np.array([464, 2068, 7586, 21831, 11, 13, 198, 50256], "<u2").tobytes()), numbers(b"a \\0 in a text")
    (16, 0)
    """
    for size in (8, 4):
        values = np.frombuffer(head[: len(head) // size * size], f"<u{size}")
        if len(values) >= _FEWEST and 0 < values.max() < _LARGEST:
            return 8 * size
    values = np.frombuffer(head[: len(head) // 2 * 2], "<u2")
    low, high = values & 0xFF, values >> 8
    # The upper byte of an id of 16 bits is often 0 or small, its lower one anything.
    small = np.mean(high < 0x09) if len(values) >= _FEWEST else 0
    if small > 0.2 and small > 2 * np.mean(low < 0x09):
        return 16
    return 0
