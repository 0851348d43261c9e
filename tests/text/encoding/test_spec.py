"""What a tokenizer.json must be as far as packtool looks into it."""

import json
from pathlib import Path
from typing import Any

import pytest

import packtool
from packtool.errors import DataError
from packtool.text.encoding.spec import parse
from tests.text.tokenizing.runs import ASSET


def test_entries_are_kept_as_they_are_but_for_merges() -> None:
    data = ASSET.read_bytes()
    whole, parsed = json.loads(data), parse(data)
    for name in ("normalizer", "pre_tokenizer", "added_tokens", "truncation", "padding"):
        assert parsed[name] == whole[name]
    del whole["model"]["merges"]
    assert parsed["model"] == whole["model"]


@pytest.mark.parametrize(
    "changed",
    [
        {"normalizer": 0},
        {"normalizer": {"type": 7}},
        {"normalizer": {"type": "Sequence", "normalizers": [None]}},
        {"pre_tokenizer": []},
        {"pre_tokenizer": {"type": "Sequence", "pretokenizers": {}}},
        {"pre_tokenizer": {"type": "Split", "pattern": "a"}},
        {"added_tokens": {}},
        {"added_tokens": [{"id": 0}]},
        {"added_tokens": [{"content": None}]},
        {"model": []},
        {"model": {"type": "BPE", "vocab": {"a": -1}}},
        {"model": {"type": "BPE", "vocab": {"a": 1 << 32}}},
        {"model": {"type": "Unigram", "vocab": [["a"]]}},
    ],
)
def test_entries_of_other_types_are_one_error(changed: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(json.loads(ASSET.read_bytes()) | changed))
    with pytest.raises(ValueError, match=r"Expected|required|array"):
        parse(path.read_bytes())
    (tmp_path / "a.txt").write_text("words")
    with pytest.raises(DataError, match=r"tokenizer.json: not a tokenizer.json \(") as caught:
        packtool.tokenize(tmp_path / "a.txt", tmp_path / "store", tokenizer=path)
    assert caught.value.code == "bad-tokenizer"
    assert not (tmp_path / "store").exists()


def test_merges_without_the_prefix_would_end_the_process(tmp_path: Path) -> None:
    vocab = {"é": 0, "b": 1, "xb": 2, "éb": 3, "<eos>": 4}
    for merges, fit in ((["é xb"], True), ([["é", "xb"]], True), (["b é"], False), ([["é", "b"]], False)):
        model = {"type": "BPE", "vocab": vocab, "merges": merges, "continuing_subword_prefix": "x"}
        data = json.dumps({"model": model, "added_tokens": []}).encode()
        if fit:
            assert parse(data)["model"]["vocab"] == vocab
        else:
            with pytest.raises(ValueError, match="merges without the prefix"):
                parse(data)
    (tmp_path / "tokenizer.json").write_bytes(data)
    (tmp_path / "a.txt").write_text("words")
    with pytest.raises(DataError, match="merges without the prefix of continuing subwords"):
        packtool.tokenize(tmp_path / "a.txt", tmp_path / "store", tokenizer=tmp_path, eos_token="<eos>")
