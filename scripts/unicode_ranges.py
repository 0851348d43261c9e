"""Write packtool/assets/unicode.json: what the encoders' versions of Unicode agree on.

    python scripts/unicode_ranges.py [FILE]

Needs unicodedata2 16.0.0 (Python's own tables depend on the version of Python), and the `tokenizers` of
constraints.txt, whose NFC is asked which marks and which compositions it does not know, and whose Punctuation what it
isolates. Ranges are written in hexadecimal, both ends included.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from unicodedata import ucd_3_2_0

VERSION = "16.0.0"
TARGET = Path(__file__).parents[1] / "packtool" / "assets" / "unicode.json"
CONTEXTS = ("a{}\u0323", "a\u0301{}", "{}\u0301", "{}\u0338", "a{}\u0334", "\u1100{}", "\u0b47{}")
"""Each mark is moved in at least one of these by an implementation that knows it."""


def ranges(codes: Iterable[int]) -> list[str]:
    """Sorted code points as ranges.

    >>> ranges([0x41, 0x42, 0x43, 0x100])
    ['41-43', '100']
    """
    found: list[list[int]] = []
    for code in codes:
        if found and found[-1][1] == code - 1:
            found[-1][1] = code
        else:
            found.append([code, code])
    return [f"{low:x}-{high:x}" if high > low else f"{low:x}" for low, high in found]


def main() -> None:
    import unicodedata2
    from tokenizers import normalizers, pre_tokenizers

    if unicodedata2.unidata_version != VERSION:
        sys.exit(
            f"needs unicodedata2 {VERSION}, not {unicodedata2.unidata_version}: pip install unicodedata2=={VERSION}"
        )
    library = normalizers.NFC()
    isolated = pre_tokenizers.Punctuation("isolated").pre_tokenize_str
    category: Callable[[str], str] = unicodedata2.category
    codes = [code for code in range(0x110000) if category(chr(code)) != "Cs"]
    unassigned = [code for code in codes if category(chr(code)) == "Cn"]
    unassigned_set = set(unassigned)
    unknown = set()
    for code in codes:
        if code not in unassigned_set:
            character = chr(code)
            parts = unicodedata2.normalize("NFD", character)
            texts = [context.format(character) for context in CONTEXTS] + [character, parts]
            if any(library.normalize_str(text) != unicodedata2.normalize("NFC", text) for text in texts):
                # What composes begins with a new character: old ones never do with each other (stability policy).
                unknown |= {ord(each) for each in character + parts if ucd_3_2_0.category(each) == "Cn"}
    found = {
        "version": VERSION,
        "unassigned": ranges(unassigned),
        "numeric": ranges(code for code in codes if category(chr(code))[0] == "N"),
        "new_marks": ranges(sorted(unknown)),
        "pcre_spaces": ["180e"],  # the Mongolian vowel separator, which Unicode counts as a space no longer
        "punctuation": ranges(code for code in codes if len(isolated(f"a{chr(code)}")) == 2),
    }
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else TARGET
    target.write_text("{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in found.items()) + "\n}\n")


if __name__ == "__main__":
    main()
