"""Added tokens of the files beside a tokenizer.json are read as Transformers reads them."""

import json
from pathlib import Path
from typing import Any

import pytest
from tokenizers import AddedToken, Tokenizer

import packtool
from packtool.errors import DataError
from packtool.formats.made_by import default_tokenizer
from packtool.formats.token_store import TokenStore
from packtool.text.encoding.load import find_tokenizer, info_of
from packtool.warnings import PacktoolWarning

START = {"content": "<|im_start|>", "special": True, "normalized": False}
SIZE = Tokenizer.from_str(default_tokenizer().decode()).get_vocab_size()


def written(place: Path, **files: Any) -> Path:
    (place / "tokenizer.json").write_bytes(default_tokenizer())
    for name, content in files.items():
        (place / f"{name}.json").write_text(json.dumps(content))
    return place


def ids(place: Path, text: str) -> list[int]:
    found: list[int] = (
        Tokenizer.from_str(find_tokenizer(place).data.decode()).encode(text, add_special_tokens=False).ids
    )
    return found


def test_the_decoder_of_the_configuration_is_read(tmp_path: Path) -> None:
    think = {"content": "<think>", "special": False, "normalized": False, "rstrip": True}
    decoder = {str(SIZE + 1): think, str(SIZE): START}
    config = {"eos_token": "<|endoftext|>", "added_tokens_decoder": decoder}
    place = written(tmp_path, tokenizer_config=config, added_tokens={"<other>": SIZE})
    assert ids(place, "<|im_start|><think> ") == [SIZE, SIZE + 1]
    assert len(ids(place, "<other>")) > 1
    found = find_tokenizer(place)
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
        assert info_of(find_tokenizer(place)).added_tokens["<|im_start|>"] == SIZE


def test_older_files_have_tokens_by_text(tmp_path: Path) -> None:
    special = {"eos_token": "<|endoftext|>", "pad_token": {"content": "<pad>"}, "additional_special_tokens": ["<s1>"]}
    place = written(tmp_path, special_tokens_map=special, added_tokens={"<b>": SIZE + 1, "<a>": SIZE})
    assert ids(place, "<a><b><pad><s1>") == [SIZE, SIZE + 1, SIZE + 2, SIZE + 3]
    found = find_tokenizer(place)
    info_of(found)
    assert {"<pad>", "<s1>"} <= set(found.special)
    assert "<a>" not in found.special
    assert "added_tokens.json" not in found.files


@pytest.mark.parametrize("decoder", [[1], {"x": START}, {"1": 3}, {"1": {"special": True}}])
def test_what_is_no_decoder_is_one_error(tmp_path: Path, decoder: Any) -> None:
    place = written(tmp_path, tokenizer_config={"added_tokens_decoder": decoder})
    with pytest.raises(DataError) as error:
        find_tokenizer(place)
    assert error.value.code == "bad-tokenizer-config"
    assert error.value.what.startswith("its added tokens can't be read")


FLAGS = ("single_word", "lstrip", "rstrip", "normalized", "special")


def with_token(place: Path, flags: dict[str, bool], **config: Any) -> Path:
    """A tokenizer with an added token <x> of these flags, and this configuration."""
    place.mkdir(exist_ok=True)
    tokenizer = Tokenizer.from_str(default_tokenizer().decode())
    tokenizer.add_tokens([AddedToken("<x>", **flags)])
    tokenizer.save(str(place / "tokenizer.json"))
    (place / "tokenizer_config.json").write_text(json.dumps({"eos_token": "<|endoftext|>", **config}))
    return place


@pytest.mark.parametrize(
    "said", [{"lstrip": True}, {"rstrip": True, "normalized": False}, {"special": True}, {}], ids=str
)
@pytest.mark.parametrize("there", [{}, {"lstrip": True}, {"special": True}], ids=str)
def test_flags_of_the_configuration_come_first(tmp_path: Path, there: dict[str, bool], said: dict[str, bool]) -> None:
    """As Transformers adds a token again whose flags differ; a special token stays one."""
    place = with_token(tmp_path / "m", there, added_tokens_decoder={str(SIZE): {"content": "<x>", **said}})
    expected = Tokenizer.from_file(str(place / "tokenizer.json"))
    expected.add_tokens([AddedToken("<x>", **said)])
    token = expected.get_added_tokens_decoder()[SIZE]
    (found,) = [token for token in find_tokenizer(place).spec["added_tokens"] if token["content"] == "<x>"]
    assert found["special"] == (token.special or bool(there.get("special")))
    assert {name: found[name] for name in FLAGS[:4]} == {name: getattr(token, name) for name in FLAGS[:4]}
    assert ids(place, "a <x> b") == expected.encode("a <x> b", add_special_tokens=False).ids


@pytest.mark.filterwarnings("ignore:.*an ordinary token")
@pytest.mark.parametrize("role", ["eos_token", "bos_token", "pad_token"])
def test_a_token_is_special_by_its_role(tmp_path: Path, role: str) -> None:
    """Command R+ ends documents with a token that its tokenizer.json calls ordinary."""
    place = with_token(tmp_path / "m", {}, **{role: "<x>"})
    assert "<x>" in find_tokenizer(place).special
    options: dict[str, Any] = {"tokenizer": place, "workers": 1, "eos_token": "<x>" if role == "eos_token" else None}
    for encoder in ("auto", "tokenizers"):
        packtool.tokenize([{"text": "a<x>b"}], tmp_path / encoder, special_tokens="text", encoder=encoder, **options)
        store = TokenStore(tmp_path / encoder)
        assert SIZE not in store.document(0)[:-1]
        assert (tmp_path / encoder / "tokenizer.json").read_bytes() == (place / "tokenizer.json").read_bytes()
    with pytest.warns(PacktoolWarning, match=r"texts hold special tokens.*<x> \(1\)"):
        packtool.tokenize([{"text": "a<x>b"}], tmp_path / "token", **options)


def test_a_configuration_that_asks_for_plain_text_is_told(tmp_path: Path) -> None:
    place = with_token(tmp_path / "m", {"special": True}, split_special_tokens=True)
    with pytest.warns(
        PacktoolWarning, match="its configuration asks for split_special_tokens, which is not done by it"
    ):
        packtool.tokenize([{"text": "a"}], tmp_path / "o", tokenizer=place, workers=1)
    packtool.tokenize([{"text": "a"}], tmp_path / "p", tokenizer=place, workers=1, special_tokens="text")
