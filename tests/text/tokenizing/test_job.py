"""A run: where the fast encoder was wrong, or refuses the tokenizer, all is done by another; digests and names of what
was read."""

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
import xxhash

from packtool.errors import DataError
from packtool.formats import manifest as manifests
from packtool.text.encoding import encoder_choice, encoders, gigatoken
from packtool.text.encoding.encoder_choice import installed
from packtool.text.encoding.encoders import EncoderMismatchError, EncoderUnsuitableError, reference_tokenizer
from packtool.text.tokenizing import block
from packtool.warnings import PacktoolWarning
from tests.stores import contents
from tests.text.encoding import shapes
from tests.text.tokenizing.runs import (
    ASSET,
    TEXTS,
    corpus_of_every_kind,
    documents,
    fails,
    jsonl,
    reference,
    run,
    special_texts,
)


@special_texts
def test_a_mismatch_falls_back_for_everything(
    tmp_path: Path, small_blocks: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.jsonl").write_bytes(jsonl([*TEXTS * 20, *["Zebra crossing"] * 4000, *TEXTS]))
    expected = contents(run(tmp_path / "a.jsonl", tmp_path / "whole", encoder="tokenizers").path)
    original = gigatoken.GigatokenEncoder.__call__

    def wrong(self: Any, texts: Any, utf8: Any = None) -> Any:
        return original(self, [text.replace("Zebra", "zebra") for text in texts])

    monkeypatch.setattr(gigatoken.GigatokenEncoder, "__call__", wrong)
    monkeypatch.setattr(encoder_choice, "LITTLE", 0)
    block._loaded.cache_clear()
    with pytest.warns(PacktoolWarning, match="give different ids for a text") as caught:
        result = run(tmp_path / "a.jsonl", tmp_path / "o")
    assert len([each for each in caught if "special tokens" not in str(each.message)]) == 1
    assert contents(result.path) == expected
    assert result.run["encoder"] == "tokenizers"
    assert "give different ids" in result.run["encoder_why"]
    with pytest.raises(EncoderMismatchError, match='Give encoder="tokenizers"'):
        run(tmp_path / "a.jsonl", tmp_path / "p", encoder="gigatoken")
    block._loaded.cache_clear()


@special_texts
def test_the_reference_is_built_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[bytes] = []

    def build(data: bytes) -> Any:
        built.append(data)
        return reference_tokenizer(data)

    spec = shapes.spec()
    spec["added_tokens"][-1]["id"] += 7  # a gap: `tokenizers` tells which ids added tokens have
    (tmp_path / "tokenizer.json").write_bytes(shapes.data(spec))
    (tmp_path / "a.jsonl").write_bytes(jsonl(TEXTS))
    monkeypatch.setattr(encoders, "reference_tokenizer", build)
    encoders.shared_reference.cache_clear()
    run(tmp_path / "a.jsonl", tmp_path / "o", tokenizer=tmp_path, eos_token=shapes.EOS)
    assert len(built) == 1
    encoders.shared_reference.cache_clear()


@pytest.mark.skipif(not (installed("gigatoken") and installed("fastokens")), reason="one is not for this platform")
@special_texts
def test_where_one_encoder_refuses_the_tokenizer_the_next_is_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encoder_choice, "LITTLE", 0)
    spec = shapes.spec(pre_tokenizer=shapes.split())  # the pattern of GPT-2, which it knows only as that of ByteLevel
    (tmp_path / "tokenizer.json").write_bytes(shapes.data(spec))
    (tmp_path / "a.jsonl").write_bytes(jsonl(TEXTS))
    options = {"tokenizer": tmp_path, "eos_token": shapes.EOS}
    expected = contents(run(tmp_path / "a.jsonl", tmp_path / "whole", encoder="tokenizers", **options).path)
    result = run(tmp_path / "a.jsonl", tmp_path / "o", **options)
    assert result.run["encoder"] == "fastokens"
    assert re.fullmatch(r"gigatoken failed \(.*\); exact for this tokenizer, .*", result.run["encoder_why"])
    assert contents(result.path) == expected
    with pytest.raises(EncoderUnsuitableError, match="gigatoken failed"):
        run(tmp_path / "a.jsonl", tmp_path / "p", encoder="gigatoken", **options)


@special_texts
def test_what_a_tokenizer_asks_for_beside_encoding_is_not_done_and_said(tmp_path: Path) -> None:
    spec = json.loads(ASSET.read_text())
    spec["truncation"] = {"direction": "Right", "max_length": 5, "strategy": "LongestFirst", "stride": 0}
    spec["model"]["dropout"] = 0.5
    (tmp_path / "tokenizer.json").write_text(json.dumps(spec))
    (tmp_path / "a.jsonl").write_bytes(jsonl(TEXTS))
    said = "asks for truncation to 5 tokens and BPE dropout, which is not done. Nothing is lost: whole documents"
    for encoder in ("auto", "tokenizers"):
        with pytest.warns(PacktoolWarning, match=said):
            result = run(tmp_path / "a.jsonl", tmp_path / encoder, tokenizer=tmp_path, encoder=encoder)
        assert documents(result.path) == reference(TEXTS)


@special_texts
def test_digests_are_of_the_bytes_of_the_files(tmp_path: Path, small_blocks: None) -> None:
    corpus = corpus_of_every_kind(tmp_path / "corpus", TEXTS)
    (corpus / "big.jsonl").write_bytes(jsonl(TEXTS * 20))
    manifest = manifests.read(run(corpus, tmp_path / "o").path)
    assert isinstance(manifest, manifests.StoreManifest)
    for entry in manifest.inputs:
        assert entry.xxh3_128 == xxhash.xxh3_128_hexdigest((corpus / entry.name).read_bytes())


def test_names_that_are_not_utf8(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / os.fsdecode(b"caf\xe9.jsonl")).write_bytes(jsonl(["a"]) + b"nonsense\n")
    with pytest.warns(PacktoolWarning, match="1 record could not be used"):
        result = run(tmp_path / "in", tmp_path / "o", on_error="quarantine")
    manifest = manifests.read(result.path)
    assert isinstance(manifest, manifests.StoreManifest)
    assert [entry.name for entry in manifest.inputs] == ["caf\\xe9.jsonl"]
    assert json.loads((result.path / "rejected.jsonl").read_text())["file"] == "caf\\xe9.jsonl"
    assert "caf\\xe9.jsonl:2: not valid JSON" in fails(DataError, tmp_path / "in", tmp_path / "p")
