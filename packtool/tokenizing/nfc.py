"""Texts on which two implementations of NFC may differ, because they follow different versions of Unicode.

Normalization of characters that Unicode 3.2 knows has been the same since (Unicode's stability policy, and its
corrigenda, which both encoders are younger than). A mark that came later is moved by an implementation that knows it,
and left in place by an older one. Those texts go to the reference.
"""

from __future__ import annotations

import functools
import re
from unicodedata import ucd_3_2_0

_HARMLESS = (
    (0x2000, 0x20CF),  # punctuation and currency
    (0x2100, 0x2BFF),  # letterlike symbols, arrows, mathematics, dingbats
    (0x3400, 0x9FFF),  # CJK ideographs
    (0xAC00, 0xFAFF),  # Hangul syllables, surrogates, private use, CJK compatibility ideographs
    (0x1F000, 0x1FBFF),  # emoji and other pictures
)
"""No marks here, and nothing that composes, in any version."""
_END = 0x20000
"""Beyond: ideographs, tags, variation selectors and private use, neither moved nor composed in any version."""


@functools.cache
def _newer() -> re.Pattern[str]:
    harmless = {code for low, high in _HARMLESS for code in range(low, high + 1)}
    ranges: list[list[int]] = []
    for code in range(0x180, _END):
        if code not in harmless and ucd_3_2_0.category(chr(code)) == "Cn":
            if ranges and ranges[-1][1] == code - 1:
                ranges[-1][1] = code
            else:
                ranges.append([code, code])
    return re.compile("[" + "".join(f"{chr(low)}-{chr(high)}" for low, high in ranges) + "]")


def version_dependent(text: str) -> bool:
    r"""Whether NFC of a text may depend on the version of Unicode.

    >>> version_dependent("e\u0301 \u65e5\u672c \U0001f600"), version_dependent("a\u1ab0\u1ac0")
    (False, True)
    """
    return not text.isascii() and _newer().search(text) is not None
