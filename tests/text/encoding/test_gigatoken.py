"""The fast encoder gives the ids of the reference wherever it may be used."""

import pytest

from packtool.text.encoding import gigatoken
from packtool.text.encoding.gigatoken import digit_tokens
from tests.text.encoding import fuzz, listed, shapes
from tests.text.encoding.encoding import build, chosen, differing, expected, ids, needs_gigatoken


@needs_gigatoken
@pytest.mark.parametrize("count", [600, pytest.param(10_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", listed.LISTED)
def test_ids_on_listed_shapes(name: str, count: int) -> None:
    spec = listed.LISTED[name]
    assert chosen(spec).encoder == "gigatoken"
    texts = ["", *fuzz.texts(spec, 2 * count, seed=len(name))]
    for special_as_text in (False, True):
        assert differing(spec, texts, "gigatoken", special_as_text) == []


@needs_gigatoken
def test_a_text_with_our_own_separator() -> None:
    for texts in (["a", f"b{gigatoken.SEPARATOR}c", "", "d"], [gigatoken.SEPARATOR]):
        assert differing(shapes.spec(), texts, "gigatoken") == []


@needs_gigatoken
@pytest.mark.parametrize("name", ["GPT-2", "digits", "Metaspace"])
def test_it_is_loaded_again_when_it_has_grown(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [*fuzz.texts(listed.LISTED[name], 60, seed=3)]
    encoder = build(shapes.data(listed.LISTED[name]), "gigatoken")
    loads = []
    load = gigatoken._load
    monkeypatch.setattr(gigatoken, "_load", lambda *given: loads.append(1) or load(*given))
    assert ids(encoder, texts[:30]) == expected(listed.LISTED[name], texts[:30])
    assert not loads
    monkeypatch.setattr(gigatoken, "_MAX_CACHE", -(1 << 60))
    assert ids(encoder, texts) == expected(listed.LISTED[name], texts)
    assert loads


def test_digits_of_the_vocabulary_keep_their_ids_and_others_get_placeholders() -> None:
    tokens = digit_tokens({"0": 40, "1": 41, "x": 42}, 1000, taken=frozenset("7"))
    ids = {token["content"]: token["id"] for token in tokens}
    assert (ids["0"], ids["1"]) == (40, 41)
    assert "7" not in ids, "the tokenizer's own added token"
    assert "x" not in ids
    placeholders = [number for number in ids.values() if number >= 1000]
    assert placeholders == list(range(1000, 1000 + len(ids) - 2))
