"""Merges that never apply are left out, and no others."""

from __future__ import annotations

import json
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from packtool.tokenizing.encoder_choice import installed, load_encoder, settle
from packtool.tokenizing.encoders import EncoderMismatchError
from packtool.tokenizing.load import load
from packtool.tokenizing.merges import applying, found, without_others
from tests.tokenizing import fuzz, shapes
from tests.tokenizing.encoding import expected, ids

Pair = tuple[str, str]
LETTERS = "abc"


def encoded(text: str, merges: list[Pair]) -> tuple[list[str], list[Pair]]:
    """The symbols of a text as BPE has them, and the merges that applied, one by one: the best, and of those the first
    in the text."""
    symbols, applied = [*text], []
    while True:
        pairs = [*pairwise(symbols)]
        known = [merges.index(pair) for pair in pairs if pair in merges]
        if not known:
            return symbols, applied
        pair = merges[min(known)]
        place = pairs.index(pair)
        symbols[place : place + 2] = ["".join(pair)]
        applied.append(pair)


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[str], list[Pair]]:
    """Entries made of others, and ways to split them in others, in any order; some entries can't be reached."""
    entries = [*LETTERS]
    for _ in range(draw(st.integers(1, 8))):
        entries.append(draw(st.sampled_from(entries)) + draw(st.sampled_from(entries)))
    entries = sorted(set(entries))
    halves = [(text[:at], text[at:]) for text in entries for at in range(1, len(text))]
    splits = [pair for pair in halves if set(pair) <= set(entries)]
    return entries, draw(st.permutations(draw(st.lists(st.sampled_from(splits), unique=True, min_size=1))))


@given(tables(), st.lists(st.text(LETTERS, max_size=16), max_size=6))
def test_ids_are_those_of_all_merges(model: tuple[list[str], list[Pair]], texts: list[str]) -> None:
    entries, merges = model
    chosen = applying(entries, merges).tolist()
    left = [pair for pair, applies in zip(merges, chosen, strict=True) if applies]
    for text in [*entries, *texts]:
        symbols, applied = encoded(text, merges)
        assert {*applied} <= {*left}
        assert encoded(text, left) == (symbols, applied)
    made = ["".join(pair) for pair in merges]
    for pair in left:  # and where there was a choice, none too many
        assert made.count("".join(pair)) == 1 or encoded("".join(pair), merges)[1][-1:] == [pair]


def test_what_is_written_with_a_space_is_a_pair() -> None:
    entries, merges = ["a", "b", "ab", "aba", "ba"], [("a", "b"), ("b", "a"), ("a", "ba"), ("ab", "a")]
    assert applying(entries, [" ".join(pair) for pair in merges]).tolist() == applying(entries, merges).tolist()


def test_entries_that_stand_for_bytes_keep_their_merges() -> None:
    entries = ["a", "<0x61>", "a<0x61>", "a<0x61>a", "<0x61>a"]
    assert applying(entries, [("a", "<0x61>"), ("<0x61>", "a"), ("a<0x61>", "a"), ("a", "<0x61>a")]).all()


def test_a_pair_with_two_ranks_keeps_all() -> None:
    merges = [("a", "b"), ("b", "a"), ("a", "ba"), ("ab", "a"), ("a", "b")]
    assert applying(["a", "b", "ab", "ba", "aba"], merges).all()


def test_entries_of_any_length_take_little_time() -> None:
    entries = ["a" * size for size in (1, 2, 3, 100_000, 100_003)]
    merges = [("a", "a"), ("aa", "a"), ("a", "aa"), (entries[3], "aaa"), ("aaa", entries[3])]
    assert applying(entries, merges).tolist() == [True, True, False, True, True]


def file_of(vocab: list[str], merges: list[Any]) -> bytes:
    model = {"type": "BPE", "vocab": {text: number for number, text in enumerate(vocab)}, "merges": merges}
    return json.dumps({"model": model}).encode()


def test_nothing_is_left_out_of_an_odd_file() -> None:
    entries, merges = ["a", "b", "ab", "ba", "aba"], [("a", "b"), ("b", "a"), ("a", "ba"), ("ab", "a"), ("b", "ab")]
    assert found(file_of([*entries, "bab"], [*merges, ("ba", "b")])) == b""  # no more merges than entries
    assert found(file_of(entries, [*merges, ("ba", "b")])) == b""  # "bab" is missing
    for wrong in ["a b c"], ["ab"], [1], [["a", "b", "c"]]:
        assert found(file_of(entries, [*map(" ".join, merges), *wrong])) == b""
    assert found(b'{"model": {"type": "BPE", "vocab": {}}}') == b""
    model = {"merges": msgspec.Raw(json.dumps(merges).encode())}
    assert without_others(model, b"") == model


def all_splits() -> bytes:
    """A tokenizer.json with a merge for every split of an entry, as files that are made of ranked entries have."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(vocab_size=4000, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator([path.read_text() for path in Path(__file__).parent.glob("*.py")], trainer)
    spec = json.loads(tokenizer.to_str())
    vocab = spec["model"]["vocab"]
    halves = [[text[:at], text[at:]] for text in vocab for at in range(1, len(text))]
    spec["model"]["merges"] = [pair for pair in halves if pair[0] in vocab and pair[1] in vocab]
    return shapes.data(spec)


@pytest.mark.skipif(not installed("gigatoken"), reason="there is no gigatoken for this platform")
def test_a_run_of_much_text_looks_for_them_and_later_ones_know(tmp_path: Path) -> None:
    path, kept = tmp_path / "tokenizer.json", tmp_path / "kept"
    path.write_bytes(all_splits())
    loaded = load(path, eos_token=0, kept=kept)
    little, much = 1 << 10, 1 << 30
    settled = partial(settle, loaded, "gigatoken", special_as_text=False)
    assert settled(kept=kept, size=little).applied == b""
    recipe = settled(kept=kept, size=much)
    assert recipe.applied == settled(kept=kept, size=little).applied != b""
    assert settled(kept=None, size=little).applied == b""

    spec = msgspec.json.decode(loaded.data)
    merges = spec["model"]["merges"]
    left = without_others({"merges": msgspec.Raw(msgspec.json.encode(merges))}, recipe.applied)["merges"]
    assert len(left) < len(spec["model"]["vocab"]) < len(merges)
    texts = [*shapes.texts(200, seed=1), *fuzz.texts(spec, 400, seed=1)]
    for _ in "probed", "found right before":
        assert ids(load_encoder(recipe, loaded.data), texts) == expected(spec, texts)

    none = msgspec.structs.replace(recipe, applied=bytes(len(recipe.applied)))
    encoder = load_encoder(none, loaded.data)
    encoder.encode(["The quick brown fox"] * (len(loaded.data) // 8))
    with pytest.raises(EncoderMismatchError, match="gigatoken and tokenizers give different ids"):
        encoder.encode(["The quick brown fox"])
