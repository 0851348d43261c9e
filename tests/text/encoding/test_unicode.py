"""Characters that one encoder knows and the other does not, in contexts that pre-tokenizers treat differently."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Regex, pre_tokenizers

from packtool.text.encoding import families, unicode
from packtool.text.encoding.unicode import table
from tests.text.encoding import ranks, shapes
from tests.text.encoding.encoding import alone, differing, expected, ids, needs_gigatoken

CODES = [code for code in range(0x110000) if not 0xD800 <= code < 0xE000]
CONTEXTS = ("{}'s", "a{}b", " {} {}", "1{}2", "{}\n\n ", "A{}a!{}a", "e{}\u0301 ", "{}{}{}'LL", "一{}あ", "{} \n{}")
SHAPES: dict[str, dict[str, Any]] = {
    "GPT-2": {"pre_tokenizer": shapes.byte_level()},
    "GPT-4": {"pre_tokenizer": shapes.split(families.GPT4)},
    "Qwen 2": {"pre_tokenizer": shapes.split(families.QWEN2), "normalizer": shapes.NFC},
    "o200k": {"pre_tokenizer": shapes.split(families.O200K)},
    "Tekken": {"pre_tokenizer": shapes.split(families.TEKKEN)},
    "looking ahead": {"pre_tokenizer": shapes.split(ranks.AHEAD)},
    "Kimi K2": {"pre_tokenizer": shapes.split(ranks.KIMI)},
    "Falcon": {"pre_tokenizer": shapes.FALCON},
    "DeepSeek": {"pre_tokenizer": shapes.splits(*families.DEEPSEEK)},
    "digits": {"pre_tokenizer": shapes.digits()},
}


def in_contexts(codes: list[int]) -> list[str]:
    """For each code point a text that has it in all contexts."""
    return ["".join(context.replace("{}", chr(code)) + " \n" for context in CONTEXTS) for code in codes]


def _some() -> list[int]:
    """A few of each thousand, and more where characters are new."""
    new = {
        code
        for low, high in ((0x180B, 0x1810), (0x1AB0, 0x1AF0), (0x10D40, 0x10D8F), (0x113B0, 0x113D5))
        for code in range(low, high)
    }
    return sorted(new | set(CODES[::61][:1000]) | set(CODES[::997]))


@needs_gigatoken
@pytest.mark.parametrize("name", SHAPES)
def test_code_points_in_contexts(name: str) -> None:
    some = _some()
    assert differing(shapes.pairs(in_contexts(some), **SHAPES[name]), in_contexts(some)) == []


@pytest.mark.slow
@needs_gigatoken
@pytest.mark.parametrize("name", SHAPES)
def test_all_code_points_in_contexts(name: str) -> None:
    texts = (in_contexts([code])[0] for code in CODES)
    assert differing(shapes.pairs(**SHAPES[name]), texts) == []


@needs_gigatoken
def test_without_routing_new_characters_would_go_wrong() -> None:
    texts = ["\u1ad1's"]
    spec = shapes.pairs(texts, **SHAPES["o200k"])
    shape = families.shape(spec)
    assert isinstance(shape, families.Shape)
    assert ids(alone(spec, "gigatoken", shape), texts) != expected(spec, texts)
    assert differing(spec, texts, "gigatoken") == []


def test_the_tables_are_those_of_the_library() -> None:
    text = "".join(map(chr, CODES))
    found = np.zeros(0x110000, np.bool_)
    for _, (start, end) in pre_tokenizers.Split(Regex(r"\P{Cn}+"), "removed").pre_tokenize_str(text):
        found[CODES[start] : CODES[end - 1] + 1] = True
    known_to_all = ~table("unassigned")
    assert not (found & known_to_all).any(), "tokenizers knows every character that is not in the table"


def having(codes: unicode.CodeTable, texts: list[str]) -> list[bool]:
    return unicode.having(codes, texts, [text.encode() for text in texts])


@given(st.lists(st.tuples(st.text(st.characters(codec="utf-8"), max_size=20), st.integers(0, 200)), max_size=8))
def test_texts_are_found_whatever_share_of_them_is_ascii(parts: list[tuple[str, int]]) -> None:
    codes = table(*unicode.NFC)
    texts = [text + "a" * more for text, more in parts]
    assert having(codes, texts) == [any(codes[ord(character)] for character in text) for text in texts]
