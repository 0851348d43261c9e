"""Filters keep what is within their bounds, and count what they drop."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from packtool.options.declare import declared
from packtool.options.tokenize import TokenizeArguments
from packtool.text.corpus.filters import OF_TEXTS, OF_TOKENS, DocumentCounts, Filters


@given(st.text(st.sampled_from("ab \n\u00a0")), st.integers(0, 6), st.integers(0, 10), st.integers(0, 10))
def test_filters(text: str, min_words: int, min_chars: int, max_chars: int) -> None:
    keep = len(text.split()) >= min_words and min_chars <= len(text) <= max_chars
    filters = Filters({"min_words": min_words, "min_chars": min_chars, "max_chars": max_chars})
    assert filters.of_texts([text, text]).tolist() == [keep, keep]
    assert not filters.need_tokens
    counted = DocumentCounts()
    counted.add([text], np.array([5]))
    assert counted == DocumentCounts(1, len(text.split()), len(text), 5)
    counted.add([text], None)
    assert counted == DocumentCounts(2, 2 * len(text.split()), 2 * len(text), 5, 1)


def test_every_filter_has_an_option_and_every_option_a_filter() -> None:
    options = {
        name
        for name, each in declared(TokenizeArguments).items()
        if each.option.group == "Which documents" and name != "on_error"
    }
    filters = OF_TEXTS.keys() | OF_TOKENS.keys()
    assert filters - options == set(), "declare it in packtool/options/tokenize.py"
    assert options - filters == set(), "add it to a table in packtool/text/corpus/filters.py"


def test_every_filter_is_tested() -> None:
    here = Path(__file__).read_text(encoding="utf-8")
    for name in OF_TEXTS:
        assert f'"{name}": ' in here, f"{name} is missing from test_filters"
