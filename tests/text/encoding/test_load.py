"""The ids of added tokens, told without the library, are those that the library gives."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from packtool.errors import DataError, UsageError
from packtool.text.encoding import load
from tests.text.encoding.shapes import token
from tests.text.tokenizing.runs import ASSET, TEXTS, documents, fails, jsonl, run

CONTENTS = ["a", "b", "<x>", "<y>", "<z>"]


def tokenizer_json(vocab: dict[str, int], added: list[tuple[str, int]]) -> bytes:
    model: dict[str, Any] = {"type": "BPE", "vocab": vocab, "merges": []}
    tokens = [token(content, number) for content, number in added]
    return json.dumps({"version": "1.0", "added_tokens": tokens, "model": model}).encode()


def vocabulary(data: bytes) -> dict[str, int]:
    return load.FoundTokenizer({"tokenizer.json": data}, "t").vocab


@given(
    vocab=st.sampled_from([{"a": 0}, {"a": 0, "b": 1}, {"b": 1, "a": 0}, {"a": 0, "b": 5}, {"a": 1, "b": 1}]),
    added=st.lists(st.tuples(st.sampled_from(CONTENTS), st.integers(0, 6)), max_size=4),
)
def test_ids_of_added_tokens_are_those_of_the_library(vocab: dict[str, int], added: list[tuple[str, int]]) -> None:
    data = tokenizer_json(vocab, added)
    try:
        expected = Tokenizer.from_buffer(data)
    except BaseException:  # it panics, or raises plain Exception
        with pytest.raises(DataError, match="can't load it"):
            vocabulary(data)
        return
    found = vocabulary(data)
    assert {text: found[text] for text, _ in added} == {text: expected.token_to_id(text) for text, _ in added}


def test_simple_files_need_no_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load, "shared_reference", None)
    data = tokenizer_json({"a": 0, "b": 1}, [("b", 1), ("<x>", 2), ("<y>", 3)])
    assert vocabulary(data) == {"a": 0, "b": 1, "<x>": 2, "<y>": 3}
    odd = tokenizer_json({"a": 0, "b": 1}, [("<x>", 5)])
    with pytest.raises(TypeError):
        vocabulary(odd)


def test_an_unknown_eos_is_a_usage_error(tmp_path: Path) -> None:
    spec = json.loads(ASSET.read_text())
    spec["added_tokens"] = []
    spec["model"]["vocab"].pop("<|endoftext|>", None)
    (tmp_path / "tokenizer.json").write_text(json.dumps(spec))
    (tmp_path / "a.jsonl").write_bytes(jsonl(TEXTS))
    options = {"tokenizer": tmp_path}
    message = fails(UsageError, tmp_path / "a.jsonl", tmp_path / "o", **options)
    assert message.startswith("eos_token: no EOS token is known for this tokenizer")
    assert "Name it with eos_token=TEXT or eos_token=ID." in message
    result = run(tmp_path / "a.jsonl", tmp_path / "o", eos_token="5", **options)
    assert all(document[-1] == 5 for document in documents(result.path))


def test_the_hub_out_of_reach_names_the_way_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    (tmp_path / "a.jsonl").write_bytes(jsonl(TEXTS))
    message = fails(DataError, tmp_path / "a.jsonl", tmp_path / "o", tokenizer="someone/some-model")
    assert message.startswith("someone/some-model: no such file, and ")
    assert "download its tokenizer.json and give the file" in message
    message = fails(DataError, tmp_path / "a.jsonl", tmp_path / "o", tokenizer=tmp_path / "nowhere" / "tokenizer.json")
    assert "no tokenizer.json there" in message


@pytest.mark.parametrize(
    ("name", "data", "what", "remedy"),
    [
        ("tokenizer.json", b"version https://git-lfs.github.com/spec/v1\noid", "pointer of Git LFS", "git lfs pull"),
        ("tokenizer.json", b"\n<!DOCTYPE html><html>", "a web page", "/resolve/ instead of /blob/"),
        ("model.gguf", b"GGUF\x03\0\0\0", "a GGUF file", "(gguf_file='model.gguf') of transformers"),
        ("cl100k_base.tiktoken", b"IQ== 0\nIg== 1\n", "ranks of tiktoken", "AutoTokenizer of transformers"),
        ("tokenizer.model", b"IQ== 0\nIg== 1\n", "ranks of tiktoken", "AutoTokenizer of transformers"),
        ("spiece.model", b"\n\x0e\n\x05<unk>", "a model of SentencePiece", "AutoTokenizer of transformers"),
        ("vocab.txt", b"[PAD]\n[UNK]\n", "a part of a tokenizer", "AutoTokenizer of transformers"),
        ("merges.txt", b"#version: 0.2\n", "a part of a tokenizer", "AutoTokenizer of transformers"),
        (
            "tekken.json",
            b'{"config": {}, "vocab": [{"rank": 0, "token_bytes": "AA=="}]}',
            "a tekken.json",
            "the tokenizer.json of",
        ),
    ],
)
def test_other_files_are_named_with_the_way_out(name: str, data: bytes, what: str, remedy: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(data)
    for source in (tmp_path / name, tmp_path):
        with pytest.raises(DataError) as caught:
            load.find_tokenizer(source)
        assert (caught.value.code, caught.value.where) == ("bad-tokenizer", str(tmp_path / name))
        assert what in caught.value.what
        assert remedy in caught.value.remedy


def test_an_encoding_of_tiktoken_is_no_hub_id() -> None:
    with pytest.raises(DataError, match=r"an encoding of tiktoken.* Give Xenova/gpt-4, which has the same ids"):
        load.find_tokenizer("cl100k_base")
    for name in ("p50k_base", "p50k_edit", "o300k_base"):
        with pytest.raises(DataError, match=r"an encoding of tiktoken.* Call convert_tiktoken_to_fast of transformers"):
            load.find_tokenizer(name)
