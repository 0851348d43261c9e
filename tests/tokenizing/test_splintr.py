"""The fast encoder of Unigram gives the ids of the reference wherever it may be used."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tokenizers import AddedToken

from packtool.commands.tokenize import tokenize
from packtool.tokenizing import splintr
from packtool.tokenizing.choose import choose
from packtool.tokenizing.encoders import EncoderMismatchError, EncoderUnsuitableError
from tests.stores import contents
from tests.tokenizing import fuzz, shapes
from tests.tokenizing.encoding import build, expected, ids
from tests.tokenizing.runs import jsonl, special_texts

needs_splintr = pytest.mark.skipif(not splintr.installed(), reason="splintr is not installed")

METASPACE = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}
OLD = {"type": "Metaspace", "replacement": "▁", "add_prefix_space": True}
TOKENS = (AddedToken("<mask>", lstrip=True, normalized=False), AddedToken("<extra_id_0>", normalized=False))
LISTED = {
    "marks": shapes.unigram(*TOKENS, pre_tokenizer=METASPACE),
    "words": shapes.unigram(
        *TOKENS, pre_tokenizer={"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, METASPACE]}
    ),
    "old": shapes.unigram(pre_tokenizer={"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, OLD]}),
    "first": shapes.unigram(pre_tokenizer={**METASPACE, "prepend_scheme": "first"}),
}
UNLISTED = {
    "whole texts": (shapes.unigram(pre_tokenizer={**METASPACE, "split": False}), "does not mark words"),
    "no marks": (shapes.unigram(pre_tokenizer={"type": "WhitespaceSplit"}), "does not mark words"),
    "no pre-tokenizer": (shapes.unigram(pre_tokenizer=None), "does not mark words"),
    "never marked": (shapes.unigram(pre_tokenizer={**METASPACE, "prepend_scheme": "never"}), "does not mark words"),
    "other marks": (shapes.unigram(pre_tokenizer={**METASPACE, "replacement": "_"}), "does not mark words"),
    "lower case": (shapes.unigram(normalizer={"type": "Lowercase"}), "its normalizer is not one of SentencePiece"),
    "other spaces": (
        shapes.unigram(normalizer=shapes.normalizers_of(shapes.ONE_SPACE, shapes.SPACES)),
        "its normalizer is not one of SentencePiece",
    ),
    "single words": (
        shapes.unigram(AddedToken("fox", single_word=True, normalized=False)),
        "'fox' is not looked for as it is written",
    ),
    "normalized tokens": (shapes.unigram(AddedToken("<x>", normalized=True)), "'<x>' is not looked for"),
    "truncation": (
        shapes.unigram(truncation={"direction": "Right", "max_length": 8, "strategy": "LongestFirst", "stride": 0}),
        "it truncates or pads",
    ),
}


@needs_splintr
@pytest.mark.parametrize("name", LISTED)
def test_ids_on_listed_shapes(name: str) -> None:
    spec = LISTED[name]
    assert choose(spec)[0] == choose(spec, "splintr")[0] == "splintr"
    texts = ["", *shapes.texts(300, seed=len(name)), *fuzz.texts(spec, 600, seed=len(name))]
    encoder = build(shapes.data(spec), "splintr")
    assert encoder.checked > 0, "probed"
    assert ids(encoder, texts) == expected(spec, texts)


@pytest.mark.parametrize("name", UNLISTED)
def test_other_shapes_go_to_the_reference(name: str) -> None:
    spec, reason = UNLISTED[name]
    assert choose(spec)[0] == "tokenizers"
    assert reason in (splintr.unsuitable(spec) or "")
    with pytest.raises(EncoderUnsuitableError, match="Give --encoder auto or tokenizers"):
        choose(spec, "splintr")


def test_bpe_is_not_for_it() -> None:
    assert splintr.unsuitable(shapes.spec()) == "its model is BPE, not Unigram"
    with pytest.raises(EncoderUnsuitableError):
        choose(shapes.spec(), "splintr")


def test_without_splintr_the_reference_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(splintr, "installed", lambda: False)
    encoder, why = choose(LISTED["marks"])
    assert encoder == "tokenizers"
    assert "splintr is not installed" in why
    with pytest.raises(EncoderUnsuitableError, match="splintr is not installed"):
        choose(LISTED["marks"], "splintr")


@needs_splintr
def test_special_tokens_as_text_go_to_the_reference() -> None:
    with pytest.raises(EncoderUnsuitableError, match="special tokens as text"):
        build(shapes.data(LISTED["marks"]), "splintr", special_as_text=True)


@needs_splintr
def test_what_it_cannot_load_is_no_mismatch() -> None:
    with pytest.raises(EncoderUnsuitableError, match="splintr failed"):
        splintr.SplintrEncoder(b"{}")


@needs_splintr
def test_a_failure_names_the_way_out() -> None:
    encoder = splintr.SplintrEncoder(shapes.data(LISTED["marks"]))
    with pytest.raises(EncoderMismatchError, match=r"splintr failed .* Give --encoder tokenizers"):
        encoder.encode([b"no text"])  # type: ignore[list-item]


@needs_splintr
@special_texts
@pytest.mark.parametrize("special", ["token", "text"])
def test_stores_are_the_same(tmp_path: Path, special: str) -> None:
    spec = LISTED["words"]
    (tmp_path / "tokenizer.json").write_text(json.dumps(spec))
    texts = [text for text in fuzz.texts(spec, 400, seed=5) if "</s>" not in text]
    for number in range(2):
        (tmp_path / f"{number}.jsonl").write_bytes(jsonl(texts[number::2]))
    inputs = [tmp_path / f"{number}.jsonl" for number in range(2)]
    made = {}
    for encoder, workers in (("tokenizers", 1), ("auto", 1), ("auto", 2)):
        out = tmp_path / f"{encoder}-{workers}"
        made[encoder, workers] = tokenize(
            inputs,
            out,
            tokenizer=tmp_path / "tokenizer.json",
            eos_token="</s>",
            encoder=encoder,
            workers=workers,
            special_tokens=special,
        ).run["encoder"]
        assert contents(out) == contents(tmp_path / "tokenizers-1")
    if special == "token":
        assert made["auto", 2] == made["auto", 1] == "splintr"
    else:
        assert made["auto", 1] == "tokenizers"
