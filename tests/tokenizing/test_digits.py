"""Numeric characters as added tokens: their own ids, or what a placeholder stands for."""

from __future__ import annotations

import numpy as np

from packtool.tokenizing.digits import Digits

VOCAB = {"0": 40, "1": 41, "x": 42}


def spelled(character: str) -> np.ndarray:
    return np.frombuffer(character.encode(), np.uint8).astype(np.uint32)


def test_digits_of_the_vocabulary_keep_their_ids_and_others_are_spelled() -> None:
    digits = Digits(VOCAB, 1000, spelled, taken=frozenset("7"))
    ids = {token["content"]: token["id"] for token in digits.tokens}
    assert (ids["0"], ids["1"]) == (40, 41)
    assert "7" not in ids, "the tokenizer's own added token"
    assert "x" not in ids
    assert len(set(ids.values())) == len(ids)
    placeholders = sorted(number for number in ids.values() if number >= 1000)
    assert placeholders == list(range(1000, 1000 + len(placeholders)))
    arabic, two = ids["٣"], ids["2"]
    found = digits.expand(np.array([40, arabic, 42, two, two], np.uint32))
    assert found.tolist() == [40, *"٣".encode(), 42, ord("2"), ord("2")]


def test_ids_without_placeholders_are_as_they_were() -> None:
    ids = np.array([40, 999], np.uint32)
    assert Digits(VOCAB, 1000, spelled, frozenset()).expand(ids) is ids
