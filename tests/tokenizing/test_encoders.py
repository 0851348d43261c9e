"""The fast encoder gives the ids of the reference wherever it may be used, and is not used anywhere else."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from tokenizers import Tokenizer

from packtool.errors import DataError, UsageError
from packtool.tokenizing import gigatoken
from packtool.tokenizing.choose import choose, load_encoder, recipe
from packtool.tokenizing.encoders import EncoderMismatchError, EncoderUnsuitableError, ReferenceEncoder
from packtool.tokenizing.load import vocabulary_size
from packtool.tokenizing.spec import parse
from packtool.tokenizing.verify import SAMPLE, Verified
from tests.tokenizing import fuzz, shapes

needs_gigatoken = pytest.mark.skipif(not gigatoken.installed(), reason="there is no gigatoken for this platform")


def build(data: bytes, encoder: str, special_as_text: bool = False) -> Verified:
    spec = parse(data)
    return load_encoder(recipe(spec, encoder, vocabulary_size(spec, data), special_as_text=special_as_text), data)


def ids(encoder: Any, texts: list[str]) -> list[list[int]]:
    flat, lengths = encoder.encode(texts)
    return [part.tolist() for part in np.split(flat, np.cumsum(lengths)[:-1])]


def expected(spec: dict[str, Any], texts: list[str], special_as_text: bool = False) -> list[list[int]]:
    tokenizer = Tokenizer.from_str(json.dumps(spec))
    tokenizer.encode_special_tokens = special_as_text
    return [tokenizer.encode(text, add_special_tokens=False).ids for text in texts]


@needs_gigatoken
@pytest.mark.parametrize("special_as_text", [False, True])
@pytest.mark.parametrize("name", shapes.LISTED)
def test_ids_on_listed_shapes(name: str, special_as_text: bool) -> None:
    spec = shapes.LISTED[name]
    assert choose(spec)[0] == "gigatoken"
    texts = [*shapes.texts(300, seed=len(name)), *fuzz.texts(spec, 600, seed=len(name))]
    encoder = build(shapes.data(spec), "gigatoken", special_as_text=special_as_text)
    assert ids(encoder, texts) == expected(spec, texts, special_as_text)


@needs_gigatoken
def test_a_text_with_our_own_separator() -> None:
    texts = ["a", f"b{gigatoken.SEPARATOR}c", "", "d"]
    encoder = build(shapes.data(shapes.spec()), "gigatoken")
    assert ids(encoder, texts) == expected(shapes.spec(), texts)
    assert ids(encoder, [gigatoken.SEPARATOR]) == expected(shapes.spec(), [gigatoken.SEPARATOR])


@needs_gigatoken
@pytest.mark.parametrize("name", ["GPT-2", "digits", "Metaspace"])
def test_it_is_loaded_again_when_it_has_grown(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [*fuzz.texts(shapes.LISTED[name], 60, seed=3)]
    encoder = build(shapes.data(shapes.LISTED[name]), "gigatoken")
    loads = []
    load = gigatoken._load
    monkeypatch.setattr(gigatoken, "_load", lambda *given: loads.append(1) or load(*given))
    assert ids(encoder, texts[:30]) == expected(shapes.LISTED[name], texts[:30])
    assert not loads
    monkeypatch.setattr(gigatoken, "_MAX_CACHE", -(1 << 60))
    assert ids(encoder, texts) == expected(shapes.LISTED[name], texts)
    assert loads


@pytest.mark.slow
@needs_gigatoken
@pytest.mark.parametrize("name", shapes.LISTED)
def test_ids_of_20000_texts(name: str) -> None:
    texts = [*shapes.texts(10_000, seed=1), *fuzz.texts(shapes.LISTED[name], 10_000, seed=1)]
    encoder = build(shapes.data(shapes.LISTED[name]), "gigatoken")
    assert ids(encoder, texts) == expected(shapes.LISTED[name], texts)


@pytest.mark.parametrize("name", shapes.UNLISTED)
def test_other_shapes_go_to_the_reference(name: str) -> None:
    spec, reason = shapes.UNLISTED[name]
    encoder, why = choose(spec)
    assert encoder == "tokenizers"
    if gigatoken.installed():
        assert reason in why
    with pytest.raises(EncoderUnsuitableError, match="Give --encoder auto or tokenizers"):
        choose(spec, "gigatoken")


@pytest.mark.parametrize("name", sorted(shapes.UNLISTED.keys() - {"dropout", "padding", "word prefix"}))
def test_ids_of_the_reference_are_those_of_tokenizers(name: str) -> None:
    spec, _ = shapes.UNLISTED[name]
    texts = shapes.texts(300, seed=2)
    assert ids(build(shapes.data(spec), "tokenizers"), texts) == expected(spec, texts)


def test_a_panic_in_the_library_is_one_clear_error() -> None:
    spec, _ = shapes.UNLISTED["word prefix"]  # its vocabulary does not have the prefix
    with pytest.raises(DataError, match="the tokenizers library can't load it"):
        build(shapes.data(spec), "tokenizers")


def test_documents_are_never_padded() -> None:
    spec, _ = shapes.UNLISTED["padding"]
    assert ids(build(shapes.data(spec), "tokenizers"), ["a"]) == expected(shapes.spec(), ["a"])


@needs_gigatoken
def test_a_pattern_gigatoken_does_not_know_is_not_a_mismatch() -> None:
    spec = shapes.spec(pre_tokenizer=shapes.split(r"\d|\w+|\W"))
    assert choose(spec)[0] == "gigatoken", "the list does not know every pattern: loading tells"
    with pytest.raises(EncoderUnsuitableError, match="gigatoken failed"):
        build(shapes.data(spec), "gigatoken")


def test_unknown_encoder() -> None:
    with pytest.raises(UsageError, match="no encoder 'fast'"):
        choose(shapes.spec(), "fast")


def test_without_gigatoken_the_reference_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gigatoken, "installed", lambda: False)
    assert choose(shapes.spec()) == ("tokenizers", "gigatoken is not installed")
    with pytest.raises(EncoderUnsuitableError, match="gigatoken is not installed"):
        choose(shapes.spec(), "gigatoken")


class Lying(ReferenceEncoder):
    """The reference, but wrong from a certain text on."""

    name = "gigatoken"

    def __init__(self, wrong: str) -> None:
        super().__init__(shapes.data(shapes.spec()))
        self._wrong = wrong

    def encode(self, texts: Any, utf8: Any = None) -> Any:
        return super().encode([text.replace(self._wrong, "") for text in texts])


def test_a_wrong_id_in_the_sample_is_found() -> None:
    reference = ReferenceEncoder(shapes.data(shapes.spec()))
    encoder = Verified(Lying("Z"), reference, cut="before")
    encoder.encode(["fine"] * 50)
    assert encoder.checked > 1
    encoder.restart()
    assert encoder.checked == 0
    with pytest.raises(EncoderMismatchError, match="give different ids"):
        encoder.encode(["aZb"])
    encoder.restart()
    encoder.encode(["fine"] * 10)
    with pytest.raises(EncoderMismatchError):  # not among the first, but the sample gets there
        encoder.encode(["a longer text with Z in it" * 4] * SAMPLE)


def test_the_sample_is_about_one_text_in_a_thousand() -> None:
    reference = ReferenceEncoder(shapes.data(shapes.spec()))
    encoder = Verified(Lying("Z"), reference, cut="before")
    for _ in range(10):
        encoder.encode(["an ordinary text of a hundred characters or so" * 2] * 1000)
    assert 4 <= encoder.checked <= 20
