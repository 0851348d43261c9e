"""Real tokenizers: the fast path gives the ids of the reference for every text.

make test-tokenizers [TEXTS=1000]
"""

import json
import os
from itertools import islice
from pathlib import Path

import pytest

from packtool.text.encoding.encoder_choice import choose_encoder
from packtool.text.encoding.encoders import ReferenceEncoder
from packtool.text.encoding.load import FoundTokenizer
from packtool.text.encoding.long_texts import cut_of
from packtool.text.encoding.spec import parse
from packtool.text.encoding.special import sentinels
from scripts.stdlib_text import modules, reference
from tests.text.encoding import fetch, fuzz, shapes
from tests.text.encoding.encoding import cut_into, differing
from tests.text.tokenizing import published

if "TEXTS" not in os.environ:
    pytest.skip("make test-tokenizers runs these", allow_module_level=True)
TEXTS = int(os.environ["TEXTS"])
SLOW = {
    "claude": "its normalizer is NFKC, not NFC or none",
    "aranizer SP": "it has an unknown token",
    "charylu": "its BPE is not on bytes",
    "chess": "its BPE is not on bytes",
    "tigrinya": "its BPE is not on bytes",
    "mon": "its model is Unigram, not BPE",
    "nepali": "its model is Unigram, not BPE",
    "nepali words": "its model is WordPiece, not BPE",
}
"""Tokenizers that no fast encoder is right for, and why."""


def paragraphs() -> list[str]:
    """Of the standard library's sources and reference, and some of many scripts."""
    documents = [document.text for source in (modules(), reference()) for document in islice(source, 150)]
    found = [part for text in documents for part in text.split("\n\n") if part.strip()]
    return [*found, *[*fuzz.PROSE, *fuzz.CODE] * (len(found) // 12)]


@pytest.fixture(scope="module")
def real() -> list[str]:
    return paragraphs()


@pytest.mark.parametrize("name", fetch.NAMES)
def test_ids_of_real_tokenizers(name: str, real: list[str]) -> None:
    found = FoundTokenizer({"tokenizer.json": fetch.tokenizer(name)}, name)
    chosen = choose_encoder(found)
    if name in SLOW:
        assert SLOW[name] in chosen.why
        return
    assert chosen.encoder != "tokenizers", chosen.why
    spec = json.loads(found.data)
    assert differing(spec, fuzz.texts(spec, TEXTS, seed=1, real=real)) == []


@pytest.mark.parametrize("name", fetch.NAMES)
def test_pieces_of_real_tokenizers(name: str, real: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    data = fetch.tokenizer(name)
    spec = parse(data)
    cut = cut_of(spec)
    assert cut or name in SLOW or choose_encoder(FoundTokenizer({"tokenizer.json": data}, name)).encoder == "fastokens"
    monkeypatch.setattr("packtool.text.encoding.long_texts.PIECE", 40)
    library = ReferenceEncoder(data)
    for text in islice(fuzz.texts(spec, TEXTS // 20, seed=2, real=real), TEXTS // 20):
        cut_into(text, cut, library)


SENTINELS = {
    "deepseek_v3": ("DeepSeek-Coder", (128801, 128800, 128802)),
    "qwen3": ("Qwen Coder, CodeGemma", (151659, 151661, 151660)),
}


@pytest.mark.parametrize("name", SENTINELS)
def test_ids_are_those_of_the_prompts_that_models_publish(name: str, tmp_path: Path) -> None:
    form, ids = SENTINELS[name]
    data = fetch.tokenizer(name)
    library, vocab = ReferenceEncoder(data), FoundTokenizer({"tokenizer.json": data}, name).vocab
    known = sentinels(vocab)
    assert tuple(vocab[text] for text in known.texts) == ids
    eos = next(text for text in ("<|endoftext|>", "<｜end▁of▁sentence｜>") if text in vocab)
    (tmp_path / "tokenizer.json").write_bytes(data)
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"eos_token": eos}))
    expected = [*library.spell(published.prompt(form)).tolist(), *library.spell(published.MIDDLE).tolist()]
    assert published.stored(tmp_path, suffix_first=False) == expected


def test_code_llama_marks_where_a_text_begins_alone(tmp_path: Path) -> None:
    data = fetch.tokenizer("code llama (made)")
    (tmp_path / "tokenizer.json").write_bytes(data)
    library = ReferenceEncoder(data)
    spec = json.loads(data)
    normalizer = shapes.normalizers_of(shapes.SPACES)
    unmarked = ReferenceEncoder(json.dumps(spec | {"normalizer": normalizer}).encode())
    texts = ("▁<PRE>", "▁<SUF>", "▁<MID>", "▁<EOT>")
    before, after, middle, end = (library.tokenizer.token_to_id(text) for text in texts)
    p, m, s = published.PREFIX, published.MIDDLE, published.SUFFIX
    marked = [*library.spell(p), after, *unmarked.spell(s), middle, *unmarked.spell(m)]
    assert published.stored(tmp_path, suffix_first=False) == [before, *marked, end]
    suffix_first = [before, after, *unmarked.spell(s), middle, *library.spell(p + m), end]
    assert published.stored(tmp_path, suffix_first=True) == suffix_first
