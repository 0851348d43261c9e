"""The encoder for any regular expression gives the ids of the reference wherever it may be used."""

from typing import Any

import pytest
from tokenizers import AddedToken

from packtool.text.encoding import fastokens
from packtool.text.encoding.encoder_choice import installed
from packtool.text.encoding.encoders import EncoderUnsuitableError
from tests.text.encoding import fuzz, ranks, shapes
from tests.text.encoding.encoding import chosen, differing

pytestmark = pytest.mark.skipif(not installed("fastokens"), reason="there is no fastokens for this platform")

HAN = r"[\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}&&[^\p{Han}]]+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+"


def model(**changes: Any) -> dict[str, Any]:
    return {**shapes.spec()["model"], **changes}


def without(*characters: str) -> dict[str, Any]:
    """Without the entries of some bytes, and all merges that need one."""
    found = model()
    kept = [merge for merge in found["merges"] if not set("".join(merge)) & set(characters)]
    vocab = {text: number for text, number in found["vocab"].items() if not set(text) & set(characters)}
    return {**found, "vocab": vocab, "merges": kept}


LISTED = {
    "Han apart": shapes.spec(pre_tokenizer=shapes.split(HAN)),
    "BLOOM": shapes.spec(pre_tokenizer=shapes.split(ranks.BLOOM), normalizer=shapes.NFC),
    "DeepSeek Coder": shapes.spec(pre_tokenizer=ranks.coder()),
    "CLIP": shapes.with_added(
        AddedToken("<|START|>", normalized=True, special=True),
        pre_tokenizer=shapes.split(shapes.CLIP, behavior="Removed", invert=True),
        normalizer=shapes.CLIP_NORMALIZER,
        model=model(end_of_word_suffix="</w>"),
    ),
    "prefix space": shapes.with_added(
        AddedToken("<m>", lstrip=True), pre_tokenizer=shapes.byte_level(add_prefix_space=True)
    ),
    "runs of digits": shapes.spec(pre_tokenizer=shapes.digits(individual=False)),
    "bytes without an entry": shapes.spec(model=without("Ģ", "ð", "z"), pre_tokenizer=shapes.digits()),
    "an empty entry": shapes.spec(
        model=model(vocab={**model()["vocab"], "": len(model()["vocab"])}), pre_tokenizer=shapes.split(HAN)
    ),
    "unknown token": shapes.spec(model=model(unk_token=shapes.EOS)),
    "normalized tokens": shapes.with_added(
        AddedToken("é", normalized=True), AddedToken("<1>", normalized=True), normalizer=shapes.NFC
    ),
    "lower case tokens": shapes.with_added(AddedToken("FOX", normalized=True), normalizer={"type": "Lowercase"}),
    "Falcon": shapes.spec(pre_tokenizer=shapes.FALCON),
    "single words": shapes.with_added(AddedToken("fox", single_word=True), pre_tokenizer=shapes.split(HAN)),
}
UNLISTED = {
    "SentencePiece": (shapes.sentencepiece(normalizer=shapes.SPACES), "its BPE is not on bytes"),
    "no pre-tokenizer": (shapes.spec(pre_tokenizer=None), "its BPE is not on bytes"),
    "words": (shapes.spec(pre_tokenizer=shapes.split(r"\w+|[^\w]+")), r"its regular expression has \w, which is read"),
    "named classes": (
        shapes.spec(pre_tokenizer=shapes.split(r"[[:alpha:]]+|[^[:alpha:]]+")),
        "its regular expression has [[:, which is read",
    ),
    "NFKC": (shapes.spec(normalizer={"type": "NFKC"}), "its normalizer is NFKC"),
    "whitespace": (
        shapes.spec(pre_tokenizer={"type": "Sequence", "pretokenizers": [{"type": "Whitespace"}, shapes.byte_level()]}),
        "its pre-tokenizer is Whitespace",
    ),
    "unknown bytes": (shapes.spec(model={**without("z"), "unk_token": shapes.EOS}), "bytes without an entry"),
    "prefix": (shapes.spec(model=model(continuing_subword_prefix="##")), "a prefix on continuing subwords"),
}


@pytest.mark.parametrize("name", LISTED)
def test_ids_on_listed_shapes(name: str) -> None:
    spec = LISTED[name]
    recipe = chosen(spec)
    assert (recipe.encoder, recipe.why) == ("fastokens", "exact for this tokenizer, verified as it runs")
    texts = ["", *fuzz.texts(spec, 1200, seed=len(name))]
    for special_as_text in (False, True):
        assert differing(spec, texts, "fastokens", special_as_text) == []


def test_long_words_do_not_exhaust_a_regular_expression_that_looks_ahead() -> None:
    ahead = r"((?=[\p{L}])([^a-z]))*((?=[\p{L}])([^A-Z]))+|\p{N}| ?[^\s\p{L}\p{N}]+|\s+"
    spec = shapes.spec(pre_tokenizer=shapes.split(ahead))
    assert differing(spec, ["aB" * 20_000, "long" * 20_000], "fastokens") == []


def test_the_other_comes_first() -> None:
    assert not isinstance(fastokens.shape(shapes.spec()), str)
    assert chosen(shapes.spec()).encoder == ("gigatoken" if installed("gigatoken") else "fastokens")


@pytest.mark.parametrize("name", UNLISTED)
def test_other_shapes_are_refused(name: str) -> None:
    spec, reason = UNLISTED[name]
    assert reason in str(fastokens.shape(spec))
    if name == "prefix":
        return  # `tokenizers` does not load it either
    with pytest.raises(EncoderUnsuitableError, match='Give encoder="auto" or tokenizers'):
        chosen(spec, "fastokens")
