"""Each rule by which a tokenizer is handed to the fast encoder, and attempts to break it."""

import unicodedata
from itertools import product

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from tokenizers import AddedToken, Regex, normalizers, pre_tokenizers

from packtool.text.encoding import families, unicode
from tests.examples import examples
from tests.text.encoding import shapes
from tests.text.encoding.encoding import differing, needs_gigatoken
from tests.text.encoding.test_unicode import CODES

MARKS = [chr(code) for code in CODES if unicodedata.combining(chr(code)) or 0x1160 <= code < 0x1200 or code == 0x3099]
ASCII = [chr(code) for code in range(0x80)]


def test_nfc_leaves_inert_tokens_alone_and_makes_none() -> None:
    nfc = normalizers.NFC()
    for last in ASCII:
        if families._inert(f"| {last}"):
            joined = "\n".join(f"|{last}{mark}" for mark in MARKS)
            assert nfc.normalize_str(joined).count(f"|{last}") == len(MARKS), f"{last!r} takes up a mark"
        else:
            assert last in ";`K" or last.isalpha() or last in "<=>"
    made = {character for character in nfc.normalize_str("".join(map(chr, CODES[0x80:]))) if character.isascii()}
    assert made == set(";`K"), "and nothing else becomes ASCII by itself"


@pytest.mark.parametrize("pattern", sorted(families.COVERING))
def test_patterns_that_cover_every_character(pattern: str) -> None:
    text = " \n".join(map(chr, CODES[::61])) + "".join(map(chr, CODES[:0x3000:3])) + "'s 'LL x\u0301\r\n  12345"
    isolated = pre_tokenizers.Split(Regex(pattern), "isolated").pre_tokenize_str(text)
    assert pre_tokenizers.Split(Regex(pattern), "removed", invert=True).pre_tokenize_str(text) == isolated


def test_patterns_with_gaps_are_not_among_them() -> None:
    text = "a1!"
    isolated = pre_tokenizers.Split(Regex(r"\p{L}+|\p{N}"), "isolated").pre_tokenize_str(text)
    assert pre_tokenizers.Split(Regex(r"\p{L}+|\p{N}"), "removed", invert=True).pre_tokenize_str(text) != isolated
    assert families.GPT2 not in families.COVERING, "never tried"


@examples(60, HealthCheck.too_slow)
@given(
    tokens=st.lists(
        st.tuples(st.text("ab< ", min_size=1, max_size=3), *[st.booleans()] * 4),
        min_size=1,
        max_size=4,
        unique_by=lambda token: token[0],
    )
)
@needs_gigatoken
def test_added_tokens_of_every_kind(tokens: list[tuple[str, bool, bool, bool, bool]]) -> None:
    added = [
        AddedToken(text, normalized=normalized, lstrip=left and not text[0].isspace(), rstrip=right, single_word=word)
        for text, normalized, left, right, word in tokens
    ]
    spec = shapes.with_added(*added)
    if isinstance(families.shape(spec), str):
        return
    texts = ("".join(each) for size in range(1, 6) for each in product("ab< ", repeat=size))
    assert differing(spec, texts, "gigatoken") == []


def test_which_characters_are_numeric() -> None:
    unassigned, numeric = unicode.table("unassigned"), unicode.table("numeric")
    known = [code for code in CODES if not unassigned[code]]
    found = pre_tokenizers.Digits(individual_digits=True).pre_tokenize_str("".join(f"{chr(code)}" for code in known))
    alone = {start for _, (start, end) in found if end == start + 1}
    assert {known[start] for start in alone} >= {code for code in known if numeric[code]}
    for _, (start, end) in found:
        if end > start + 1:
            assert not numeric[known[start:end]].any()
    for code in np.flatnonzero(numeric).tolist():
        assert normalizers.NFC().normalize_str(f"a{chr(code)}\u0301") == f"a{chr(code)}\u0301"


@needs_gigatoken
def test_entries_that_are_not_byte_strings_take_nobodys_place() -> None:
    colliding = ["🇨🇭", "日", "e\u0301", "中文", "\u3000"]  # as text what others are as bytes
    spec = shapes.with_entries(*colliding)
    found = families.shape(spec)
    assert isinstance(found, families.Shape)
    assert found.foreign
    for _ in range(4):  # which of two entries won changed from load to load
        assert differing(spec, ["🇨🇭 日本 é été", "中文\u3000日 e\u0301", *colliding], "gigatoken") == []


def test_a_byte_that_nothing_falls_back_to() -> None:
    spec = shapes.sentencepiece(normalizer=shapes.SPACES)
    without = {text: number for text, number in spec["model"]["vocab"].items() if text != "<0x09>"}
    model = {**spec["model"], "vocab": without}
    assert families.shape({**spec, "model": model}) == "it has byte fallback, but not for every byte"
    model = {**spec["model"], "vocab": {**without, "\t": 999}}
    assert isinstance(families.shape({**spec, "model": model}), families.Shape)
    without.pop("<0xE2>")
    assert isinstance(families.shape({**spec, "model": {**model, "vocab": {**without, "\t": 999, "â": 998}}}), str)


def test_the_BYTE_CHARACTERS_are_those_of_the_library() -> None:
    assert set(pre_tokenizers.ByteLevel.alphabet()) == families.BYTE_CHARACTERS
