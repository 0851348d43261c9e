"""From blocks to a store: counts, digests and names of what was read."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import xxhash

from packtool.errors import DataError
from packtool.formats import manifest as manifests
from packtool.warnings import PacktoolWarning
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


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return corpus_of_every_kind(tmp_path / "corpus", TEXTS)


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
def test_digests_are_of_the_bytes_of_the_files(corpus: Path, tmp_path: Path, small_blocks: None) -> None:
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
