"""The shipped tokenizer, and the script that trains it."""

import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer
from train_tokenizer import train

from tests.examples import examples

SHIPPED = Path(__file__).parents[2] / "packtool" / "assets" / "tokenizer.json"
KNOWN_EOS = ("<|endoftext|>", "</s>", "<|end_of_text|>", "<eos>")
TOKENIZER = Tokenizer.from_file(str(SHIPPED))


def test_is_a_small_byte_level_bpe() -> None:
    raw = json.loads(SHIPPED.read_bytes())
    assert SHIPPED.stat().st_size < 500_000
    assert raw["model"]["type"] == "BPE"
    assert raw["normalizer"] is raw["post_processor"] is raw["truncation"] is raw["padding"] is None
    assert raw["pre_tokenizer"] == {
        "type": "ByteLevel",
        "add_prefix_space": False,
        "trim_offsets": True,
        "use_regex": True,
    }
    model = {key: raw["model"][key] for key in ("dropout", "unk_token", "byte_fallback")}
    assert model == {"dropout": None, "unk_token": None, "byte_fallback": False}


def test_ids_are_contiguous_and_there_is_one_eos() -> None:
    vocabulary = TOKENIZER.get_vocab(with_added_tokens=True)
    assert sorted(vocabulary.values()) == list(range(8192))
    assert [token for token in KNOWN_EOS if token in vocabulary] == ["<|endoftext|>"]
    assert TOKENIZER.encode("<|endoftext|>").ids == [vocabulary["<|endoftext|>"]]


@examples(100)
@given(st.text())
def test_round_trips_any_text(text: str) -> None:
    assert TOKENIZER.decode(TOKENIZER.encode(text).ids, skip_special_tokens=False) == text


def test_training_is_deterministic() -> None:
    texts = ["the cat sat on the mat, the cat ate the rat", "a ünïcode tèxt " * 3]
    first, second = train(texts, 280), train(texts, 280)
    assert first == second
    small = Tokenizer.from_str(first)
    assert small.get_vocab_size() == 280
    assert small.decode(small.encode("the ünïcode rat").ids) == "the ünïcode rat"
