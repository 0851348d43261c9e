"""Long texts cut into pieces give the ids of the whole text; where that is not certain, they are not cut."""

from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest
from tokenizers import AddedToken

from packtool.text.encoding import long_texts as pieces_module
from packtool.text.encoding.encoders import ReferenceEncoder
from packtool.text.encoding.long_texts import AT, BEFORE, PIECE, cut_of, pieces
from tests.examples import tried
from tests.text.encoding import fuzz, listed, shapes
from tests.text.encoding.encoding import build, chosen, cut_into

CUT = {name: spec for name, spec in listed.LISTED.items() if cut_of(spec)}


def test_which_tokenizers_allow_it() -> None:
    assert CUT.keys() == listed.LISTED.keys() - {"added words", "single words"}
    assert {name for name, spec in CUT.items() if cut_of(spec) == AT} == {"Llama 2", "Phi 3", "Metaspace"}
    assert not any(cut_of(spec) for name, (spec, _) in listed.UNLISTED.items() if name not in _HARMLESS)
    assert not cut_of(shapes.spec(pre_tokenizer=shapes.split(r"\w+ ?|\W")))
    assert not cut_of({"model": {"type": "Unigram"}})


_HARMLESS = {
    *("unknown token", "byte fallback", "word prefix", "word suffix", "normalized tokens"),
    *("runs of digits", "digits found later"),
    "bytes without an entry",
}
"""Shapes that gigatoken is not used for, though they never join a letter to the whitespace after it."""


def added_anywhere() -> Iterator[dict[str, Any]]:
    """Tokenizers with an added token of any two or three of the characters that a cut is made between."""
    normalizer = shapes.normalizers_of(shapes.PREPEND, shapes.SPACES)
    for cut, size in product((AT, BEFORE), (1, 2, 3)):
        for characters in product("o e\n.", repeat=size):
            flags = {"lstrip": size == 2, "rstrip": size == 3}
            token = AddedToken("".join(characters), normalized=False, **flags)
            yield shapes.sentencepiece(token, normalizer=normalizer) if cut == AT else shapes.with_added(token)


def test_no_added_token_lies_over_a_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever it begins with: where a cut is allowed, the pieces have the ids of the whole."""
    monkeypatch.setattr(pieces_module, "PIECE", 4)
    text = "so one\nof  the e.o  o e\n\n.e o. toe on eo e oe .o .e"
    allowed = 0
    for spec in added_anywhere():
        if not (cut := cut_of(spec)):
            continue
        allowed += 1
        cut_into(text, cut, ReferenceEncoder(shapes.data(spec)))
    assert allowed > 60


@pytest.mark.parametrize("name", CUT)
def test_pieces_give_the_ids_of_the_whole(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    reference = ReferenceEncoder(shapes.data(CUT[name]))
    monkeypatch.setattr(pieces_module, "PIECE", 12)
    cuts = 0
    encoder = chosen(CUT[name]).encoder
    fast = None if encoder == "tokenizers" else build(shapes.data(CUT[name]), encoder)
    count = tried(900)
    texts = [*fuzz.texts(CUT[name], 2 * count, seed=7)]
    for text in map(" ".join, zip(texts[::3], texts[1::3], texts[2::3], strict=True)):
        parts = cut_into(text, cut_of(CUT[name]), reference)
        cuts += len(parts) - 1
        if fast is not None:
            assert fast.encode(parts)[0].tolist() == reference.spell(text).tolist()
    assert cuts > count // 3


def test_where_there_is_no_place_to_cut_for_long() -> None:
    text = "a1" * PIECE
    assert pieces(text, BEFORE) == [text]
    assert pieces(f"{text}a {text}a {text}", BEFORE) == [f"{text}a", f" {text}a", f" {text}"]
