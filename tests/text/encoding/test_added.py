"""Added tokens of the files beside a tokenizer.json are read as Transformers reads them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer

from packtool.errors import DataError
from packtool.outputs.tokenizer_files import default_tokenizer
from packtool.text.encoding.load import find, info_of
from packtool.warnings import PacktoolWarning

START = {"content": "<|im_start|>", "special": True, "normalized": False}
SIZE = Tokenizer.from_str(default_tokenizer().decode()).get_vocab_size()


def written(place: Path, **files: Any) -> Path:
    (place / "tokenizer.json").write_bytes(default_tokenizer())
    for name, content in files.items():
        (place / f"{name}.json").write_text(json.dumps(content))
    return place


def ids(place: Path, text: str) -> list[int]:
    found: list[int] = Tokenizer.from_str(find(place).data.decode()).encode(text, add_special_tokens=False).ids
    return found


def test_the_decoder_of_the_configuration_is_read(tmp_path: Path) -> None:
    think = {"content": "<think>", "special": False, "normalized": False, "rstrip": True}
    decoder = {str(SIZE + 1): think, str(SIZE): START}
    config = {"eos_token": "<|endoftext|>", "added_tokens_decoder": decoder}
    place = written(tmp_path, tokenizer_config=config, added_tokens={"<other>": SIZE})
    assert ids(place, "<|im_start|><think> ") == [SIZE, SIZE + 1]
    assert len(ids(place, "<other>")) > 1
    found = find(place)
    info = info_of(found)
    assert info.added_tokens["<|im_start|>"] == SIZE
    assert {"<|im_start|>"} <= set(found.special)
    assert "<think>" not in found.special
    assert info.vocab_size == SIZE + 2
    spec = json.loads(found.data)
    del spec["added_tokens"][-2:]
    assert spec == json.loads(default_tokenizer())


def test_another_id_than_the_configuration_says_is_told(tmp_path: Path) -> None:
    """InternLM 2 has such files: its vocabulary keeps the ids for tokens of other names."""
    config = {"eos_token": "<|endoftext|>", "added_tokens_decoder": {"300": START, str(SIZE + 1): {"content": "<x>"}}}
    place = written(tmp_path, tokenizer_config=config)
    told = rf"<\|im_start\|> is {SIZE}, as in Transformers, but tokenizer_config\.json says 300 \(1 such token\)\."
    with pytest.warns(PacktoolWarning, match=told):
        assert info_of(find(place)).added_tokens["<|im_start|>"] == SIZE


def test_older_files_have_tokens_by_text(tmp_path: Path) -> None:
    special = {"eos_token": "<|endoftext|>", "pad_token": {"content": "<pad>"}, "additional_special_tokens": ["<s1>"]}
    place = written(tmp_path, special_tokens_map=special, added_tokens={"<b>": SIZE + 1, "<a>": SIZE})
    assert ids(place, "<a><b><pad><s1>") == [SIZE, SIZE + 1, SIZE + 2, SIZE + 3]
    found = find(place)
    info_of(found)
    assert {"<pad>", "<s1>"} <= set(found.special)
    assert "<a>" not in found.special
    assert "added_tokens.json" not in found.files


def test_a_file_that_lacks_nothing_stays_as_it_is(tmp_path: Path) -> None:
    known = {"eos_token": "<|endoftext|>", "added_tokens_decoder": {"0": {"content": "<|endoftext|>", "special": True}}}
    assert find(written(tmp_path, tokenizer_config=known)).data == default_tokenizer()


@pytest.mark.parametrize("decoder", [[1], {"x": START}, {"1": 3}, {"1": {"special": True}}])
def test_what_is_no_decoder_is_one_error(tmp_path: Path, decoder: Any) -> None:
    place = written(tmp_path, tokenizer_config={"added_tokens_decoder": decoder})
    with pytest.raises(DataError) as error:
        find(place)
    assert error.value.code == "bad-tokenizer-config"
    assert error.value.what.startswith("its added tokens can't be read")
