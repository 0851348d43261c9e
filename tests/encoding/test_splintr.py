"""The fast encoder of Unigram and WordPiece gives the ids of the reference wherever it may be used."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer

from packtool.commands.tokenize import tokenize
from packtool.encoding import splintr
from packtool.encoding.encoder_choice import choose, installed
from packtool.encoding.encoders import EncoderMismatchError, EncoderUnsuitableError
from tests.encoding import fuzz, shapes
from tests.encoding.encoding import alone, build, expected, ids
from tests.stores import contents
from tests.tokenizing.runs import jsonl, special_texts

needs_splintr = pytest.mark.skipif(not installed("splintr"), reason="splintr is not installed")


def wordpiece_model(**changes: Any) -> dict[str, Any]:
    spec = shapes.wordpiece()
    return {**spec, "model": {**spec["model"], **changes}}


METASPACE = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}
OLD = {"type": "Metaspace", "replacement": "▁", "add_prefix_space": True}
QUOTES = [{"type": "Replace", "pattern": {"String": mark}, "content": '"'} for mark in "“”"]
TOKENS = (AddedToken("<mask>", lstrip=True, normalized=False), AddedToken("<extra_id_0>", normalized=False))
LISTED = {
    "marks": shapes.unigram(*TOKENS, pre_tokenizer=METASPACE),
    "words": shapes.unigram(
        *TOKENS, pre_tokenizer={"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, METASPACE]}
    ),
    "old": shapes.unigram(pre_tokenizer={"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, OLD]}),
    "first": shapes.unigram(pre_tokenizer={**METASPACE, "prepend_scheme": "first"}),
    "quotes replaced": shapes.unigram(
        *TOKENS, pre_tokenizer=METASPACE, normalizer=shapes.normalizers_of(*QUOTES, shapes.ONE_SPACE)
    ),
    "BERT": shapes.wordpiece(AddedToken("<br>", normalized=False)),
    "BERT, with its template and truncation": shapes.wordpiece(
        post_processor={"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]},
        truncation={"direction": "Right", "max_length": 8, "strategy": "LongestFirst", "stride": 0},
    ),
    "BERT, cased": shapes.wordpiece(normalizer=shapes.bert(lowercase=False)),
    "BERT, lower case, accents": shapes.wordpiece(normalizer=shapes.bert(strip_accents=False)),
    "BERT, cased, no accents": shapes.wordpiece(normalizer=shapes.bert(strip_accents=True, lowercase=False)),
    "BERT, nothing cleaned": shapes.wordpiece(normalizer=shapes.bert(clean_text=False, handle_chinese_chars=False)),
}
UNLISTED = {
    "whole texts": (shapes.unigram(pre_tokenizer={**METASPACE, "split": False}), "does not mark words"),
    "no marks": (shapes.unigram(pre_tokenizer={"type": "WhitespaceSplit"}), "does not mark words"),
    "no pre-tokenizer": (shapes.unigram(pre_tokenizer=None), "does not mark words"),
    "never marked": (shapes.unigram(pre_tokenizer={**METASPACE, "prepend_scheme": "never"}), "does not mark words"),
    "other marks": (shapes.unigram(pre_tokenizer={**METASPACE, "replacement": "_"}), "does not mark words"),
    "lower case": (shapes.unigram(normalizer={"type": "Lowercase"}), "its normalizer is not one of SentencePiece"),
    "quotes replaced after NFC": (
        shapes.unigram(normalizer=shapes.normalizers_of(shapes.NFC, *QUOTES)),
        "its normalizer is not one of SentencePiece",
    ),
    "other spaces": (
        shapes.unigram(normalizer=shapes.normalizers_of(shapes.ONE_SPACE, shapes.SPACES)),
        "its normalizer is not one of SentencePiece",
    ),
    "single words": (
        shapes.unigram(AddedToken("fox", single_word=True, normalized=False)),
        "its added token 'fox' stands for single words only",
    ),
    "normalized tokens": (shapes.unigram(AddedToken("<x>", normalized=True)), "'<x>' is looked for in normalized text"),
    "whole words": (
        shapes.wordpiece(pre_tokenizer={"type": "WhitespaceSplit"}),
        "its pre-tokenizer is not BERT's",
    ),
    "NFKC": (shapes.wordpiece(normalizer={"type": "NFKC"}), "its normalizer is not BERT's"),
    "long words": (wordpiece_model(max_input_chars_per_word=200), "another number of characters than 100"),
    "other prefix": (wordpiece_model(continuing_subword_prefix="@@"), "another prefix than ##"),
    "no unknown token": (wordpiece_model(unk_token="<unk>"), "lacks the unknown token"),
    "normalized words": (
        shapes.wordpiece(AddedToken("<X>", normalized=True)),
        "'<X>' is looked for in normalized text",
    ),
    "spaces that another token strips": (
        shapes.unigram(AddedToken("   ", special=True), AddedToken("<mask>", lstrip=True, normalized=False)),
        "its added token '   ' has spaces that another strips",
    ),
}


@needs_splintr
@pytest.mark.parametrize("name", LISTED)
def test_ids_on_listed_shapes(name: str) -> None:
    spec = LISTED[name]
    assert choose(spec).encoder == choose(spec, "splintr").encoder == "splintr"
    texts = ["", *shapes.texts(300, seed=len(name)), *fuzz.texts(spec, 600, seed=len(name))]
    encoder = build(shapes.data(spec), "splintr")
    assert encoder.checked > 0, "probed"
    assert ids(encoder, texts) == expected(spec, texts)


@pytest.mark.parametrize("name", UNLISTED)
def test_other_shapes_go_to_the_reference(name: str) -> None:
    spec, reason = UNLISTED[name]
    assert choose(spec).encoder == "tokenizers"
    assert reason in str(splintr.shape(spec))
    with pytest.raises(EncoderUnsuitableError, match="Give --encoder auto or tokenizers"):
        choose(spec, "splintr")


def test_bpe_is_not_for_it() -> None:
    with pytest.raises(EncoderUnsuitableError, match="its model is BPE, not Unigram or WordPiece"):
        choose(shapes.spec(), "splintr")


def test_without_splintr_the_reference_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("packtool.encoding.encoder_choice.installed", lambda encoder: False)
    chosen = choose(LISTED["marks"])
    assert chosen.encoder == "tokenizers"
    assert "splintr is not installed" in chosen.why
    with pytest.raises(EncoderUnsuitableError, match="splintr is not installed"):
        choose(LISTED["marks"], "splintr")


@needs_splintr
def test_special_tokens_as_text_go_to_the_reference() -> None:
    with pytest.raises(EncoderUnsuitableError, match="special tokens as text"):
        build(shapes.data(LISTED["marks"]), "splintr", special_as_text=True)


@needs_splintr
def test_what_it_cannot_load_is_no_mismatch() -> None:
    with pytest.raises(EncoderUnsuitableError, match="splintr failed"):
        alone({"model": {"type": "Unigram"}}, "splintr")


@needs_splintr
def test_a_failure_names_the_way_out() -> None:
    encoder = alone(LISTED["marks"], "splintr")
    with pytest.raises(EncoderMismatchError, match=r"splintr failed .* Give --encoder tokenizers"):
        encoder.encode([b"no text"])


FLAGS = [
    {},
    {"lowercase": False},
    {"strip_accents": False},
    {"lowercase": False, "strip_accents": True},
    {"clean_text": False},
    {"lowercase": False, "handle_chinese_chars": False},
]
CONTEXTS = "a{0}b {0} {0}e\u0301 1{0} e\u0323{0}\u0301 a{0}."


def visible(codes: list[int], **flags: Any) -> dict[str, Any]:
    """BERT with an entry for each of these code points: what becomes of them is seen, not unknown."""
    spec = shapes.wordpiece(normalizer=shapes.bert(**flags))
    texts = dict.fromkeys([*spec["model"]["vocab"], *map(chr, codes), *(f"##{chr(code)}" for code in codes)])
    return {**spec, "model": {**spec["model"], "vocab": {text: number for number, text in enumerate(texts)}}}


def differing(codes: list[int], flags: dict[str, Any]) -> list[str]:
    """Code points with a context whose ids are not those of the library."""
    spec = visible(codes, **flags)
    reference, encoder = Tokenizer.from_str(json.dumps(spec)), build(shapes.data(spec), "splintr")
    found = []
    for at in range(0, len(codes), 4000):
        part = codes[at : at + 4000]
        texts = [CONTEXTS.format(chr(code)) for code in part]
        wanted = reference.encode_batch_fast(texts, add_special_tokens=False)
        pairs = zip(part, ids(encoder, texts), wanted, strict=True)
        found += [f"U+{code:04X}" for code, given, each in pairs if given != each.ids]
    return found


CODES = [code for code in range(0x110000) if not 0xD800 <= code < 0xE000]


@needs_splintr
def test_bert_reads_character_by_character() -> None:
    assert differing(CODES[::499] + CODES[0x300:0x700:3], {}) == []


@pytest.mark.slow
@needs_splintr
@pytest.mark.parametrize("flags", FLAGS, ids=str)
def test_bert_reads_all_code_points(flags: dict[str, Any]) -> None:
    assert differing(CODES, flags) == []


@needs_splintr
def test_without_routing_new_marks_would_go_wrong() -> None:
    text = "a\U0001e2ec"  # a mark of Unicode 12, which the library does not know as one
    spec = visible([ord(text[1])])
    assert ids(alone(spec, "splintr"), [text]) != expected(spec, [text])
    assert ids(build(shapes.data(spec), "splintr"), [text]) == expected(spec, [text])


@needs_splintr
@given(
    st.lists(
        st.text(
            st.sampled_from([*map(chr, range(0x20, 0x400)), *"ΣσςİıßǅÅ\u0301\u0323\u0338\u1ab0한ᄀ각ำ্เ"]), max_size=9
        )
    )
)
def test_marks_and_cases_in_any_order(words: list[str]) -> None:
    for spec in (LISTED["BERT"], LISTED["BERT, lower case, accents"], LISTED["BERT, cased, no accents"]):
        texts = ["".join(words), " ".join(words)]
        assert ids(_loaded(json.dumps(spec)), texts) == expected(spec, texts)


@functools.cache
def _loaded(spec: str) -> Any:
    return build(spec.encode(), "splintr")


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
