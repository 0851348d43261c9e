"""Characters that a tokenizer has no token for are named, and counted as the reference loses them."""

import warnings
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

import packtool
from packtool.warnings import PacktoolWarning
from tests.stores import load
from tests.text.tokenizing.runs import ASSET

TEXTS = ["the quick brown", "over a lazy dog"]


def trained(path: Path, *, byte_level: bool, unk: str | None = None, lower: bool = False, **options: Any) -> Path:
    tokenizer = Tokenizer(models.BPE(unk_token=unk))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(False) if byte_level else pre_tokenizers.Whitespace()
    tokenizer.decoder = decoders.ByteLevel()
    if lower:
        tokenizer.normalizer = normalizers.Lowercase()
    special = ["<eos>", *([unk] if unk else [])]
    tokenizer.train_from_iterator(TEXTS, trainers.BpeTrainer(special_tokens=special, show_progress=False, **options))
    tokenizer.save(str(path))
    return path


def said(folder: Path, tokenizer: Path, texts: list[str]) -> tuple[list[str], dict[str, int]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        packtool.tokenize(iter(texts), folder / "s", tokenizer=tokenizer, eos_token="<eos>", overwrite=True)
    counts = load(folder / "s")["counts"]
    gaps = {name: counts[name] for name in ("vanished_characters", "unknown_tokens") if name in counts}
    return [str(each.message) for each in caught if each.category is PacktoolWarning], gaps


def test_bytes_without_a_token_vanish_and_are_counted(tmp_path: Path) -> None:
    path = trained(tmp_path / "t.json", byte_level=True)
    texts = ["the Fox, 42 dogs!", "слово", "the dog"]
    messages, counts = said(tmp_path, path, texts)
    assert any("has no token for" in message and "of the 256 bytes: " in message for message in messages)
    assert any("characters vanished, which the tokenizer has no token for" in message for message in messages)
    reference = Tokenizer.from_file(str(path))
    lost = sum(len(text) - len(reference.decode(reference.encode(text).ids)) for text in texts)
    assert counts == {"vanished_characters": lost}


def test_a_normalizer_comes_first(tmp_path: Path) -> None:
    path = trained(tmp_path / "t.json", byte_level=True, lower=True)
    assert said(tmp_path, path, ["THE DOG<eos>", "THE 1"])[1] == {"vanished_characters": 1}


def test_characters_without_a_token_vanish(tmp_path: Path) -> None:
    messages, counts = said(tmp_path, trained(tmp_path / "t.json", byte_level=False), ["the fox F", "the dog"])
    assert counts == {"vanished_characters": len("fxF")}
    assert any("and none for the unknown" in message for message in messages)


def test_unknown_tokens_have_a_name_of_their_own(tmp_path: Path) -> None:
    path = trained(tmp_path / "t.json", byte_level=False, unk="[UNK]")
    messages, counts = said(tmp_path, path, ["the Fox F", "the dog"])
    reference = Tokenizer.from_file(str(path))
    ids = reference.encode("the Fox F").ids
    assert counts == {"unknown_tokens": ids.count(reference.token_to_id("[UNK]"))}
    assert not any("special tokens" in message for message in messages)
    assert any("unknown tokens stand for what the tokenizer has no token for" in message for message in messages)


@pytest.mark.parametrize("byte_level", [True, False])
def test_a_whole_alphabet_is_not_warned_of(tmp_path: Path, byte_level: bool) -> None:
    if byte_level:
        path = trained(tmp_path / "t.json", byte_level=True, initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    else:
        path = ASSET
    eos = None if path == ASSET else "<eos>"
    packtool.tokenize(iter(["слово"]), tmp_path / "s", tokenizer=path, eos_token=eos)  # a warning would be an error
