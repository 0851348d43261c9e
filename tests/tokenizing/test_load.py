"""The ids of added tokens, told without the library, are those that the library gives."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from packtool.errors import DataError
from packtool.tokenizing import load
from packtool.tokenizing.spec import parse

CONTENTS = ["a", "b", "<x>", "<y>", "<z>"]
FLAGS = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}


def tokenizer_json(vocab: dict[str, int], added: list[tuple[str, int]]) -> bytes:
    model: dict[str, Any] = {"type": "BPE", "vocab": vocab, "merges": []}
    tokens = [{"id": number, "content": content, **FLAGS} for content, number in added]
    return json.dumps({"version": "1.0", "added_tokens": tokens, "model": model}).encode()


@given(
    vocab=st.sampled_from([{"a": 0}, {"a": 0, "b": 1}, {"b": 1, "a": 0}, {"a": 0, "b": 5}, {"a": 1, "b": 1}]),
    added=st.lists(st.tuples(st.sampled_from(CONTENTS), st.integers(0, 6)), max_size=4),
)
def test_ids_of_added_tokens_are_those_of_the_library(vocab: dict[str, int], added: list[tuple[str, int]]) -> None:
    data = tokenizer_json(vocab, added)
    try:
        expected = Tokenizer.from_buffer(data)
    except BaseException:  # it panics, or raises plain Exception
        with pytest.raises(DataError, match="can't load it"):
            load._vocabulary(parse(data), data, "t")
        return
    found = load._vocabulary(parse(data), data, "t")
    assert {text: found[text] for text, _ in added} == {text: expected.token_to_id(text) for text, _ in added}


def test_simple_files_need_no_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load, "reference_tokenizer", None)
    data = tokenizer_json({"a": 0, "b": 1}, [("b", 1), ("<x>", 2), ("<y>", 3)])
    assert load._vocabulary(parse(data), data, "t") == {"a": 0, "b": 1, "<x>": 2, "<y>": 3}
    odd = tokenizer_json({"a": 0, "b": 1}, [("<x>", 5)])
    with pytest.raises(TypeError):
        load._vocabulary(parse(odd), odd, "t")
