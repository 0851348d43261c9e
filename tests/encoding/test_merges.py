"""Merges that never apply are left out, and no others."""

from __future__ import annotations

import json
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from packtool.encoding import merges
from packtool.encoding.encoder_choice import FAST, installed, load_encoder, settle
from packtool.encoding.encoders import EncoderMismatchError, EncoderRecipe
from packtool.encoding.load import load
from packtool.encoding.merges import applying, without_idle
from packtool.encoding.verify import Verified
from tests.encoding import fuzz, shapes
from tests.encoding.encoding import expected, ids

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


ENTRIES = ["a", "b", "ab", "ba", "aba", "bab", "abab"]
SPLITS = [(text[:at], text[at:]) for text in ENTRIES for at in range(1, len(text))]


def model_of(vocab: list[str], merges: list[Any]) -> dict[str, msgspec.Raw]:
    model = {"vocab": {text: number for number, text in enumerate(vocab)}, "merges": merges}
    return {name: msgspec.Raw(json.dumps(value).encode()) for name, value in model.items()}


def test_what_is_written_with_a_space_is_a_pair() -> None:
    left = without_idle(model_of(ENTRIES, SPLITS))["merges"]
    assert len(left) < len(SPLITS)
    assert without_idle(model_of(ENTRIES, [" ".join(pair) for pair in SPLITS]))["merges"] == left


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


def test_nothing_is_left_out_of_an_odd_file() -> None:
    written = [" ".join(pair) for pair in SPLITS]
    odd = [
        model_of(ENTRIES, SPLITS[: len(ENTRIES)]),  # no more merges than entries
        model_of([*ENTRIES[:-2], "x", "y"], SPLITS),  # "bab" is missing
        *(model_of(ENTRIES, [*written, wrong]) for wrong in ("a b a", "ab", 1, ["a", "b", "a"])),
        {"vocab": msgspec.Raw(b"{}")},
    ]
    assert [without_idle(model) for model in odd] == odd


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
    settled = partial(settle, loaded, "gigatoken", special_as_text=False)
    little, much = (settled(kept=kept, size=size) for size in (1 << 10, 1 << 30))
    assert (little.lean, much.lean) == (False, True)
    spec = msgspec.json.decode(loaded.found.data)

    def merges_of(recipe: EncoderRecipe) -> int:
        return len(msgspec.json.decode(FAST["gigatoken"].prepared(loaded.found.data, recipe))["model"]["merges"])

    assert merges_of(much) < len(spec["model"]["vocab"]) < merges_of(little) == len(spec["model"]["merges"])
    texts = [*shapes.texts(200, seed=1), *fuzz.texts(spec, 400, seed=1)]
    assert load_encoder(little, lambda: loaded.found.data).checked > 0, "probed"
    whole = Path(little.kept).stat().st_size
    assert load_encoder(much, lambda: loaded.found.data).checked > 0, "probed, since less is loaded"
    assert Path(little.kept).stat().st_size < whole
    for recipe in little, much:
        encoder = load_encoder(recipe, lambda: loaded.found.data)
        assert encoder.checked == 0, "found right before"
        assert ids(encoder, texts) == expected(spec, texts)


@pytest.mark.skipif(not installed("gigatoken"), reason="there is no gigatoken for this platform")
def test_what_was_kept_is_not_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, kept = tmp_path / "tokenizer.json", tmp_path / "kept"
    path.write_bytes(all_splits())
    loaded = load(path, eos_token=0, kept=kept)
    recipe = settle(loaded, "gigatoken", special_as_text=False, kept=kept, size=1 << 30)
    with monkeypatch.context() as wrong:
        wrong.setattr(Verified, "require", lambda *_: None)
        wrong.setattr(merges, "applying", lambda vocab, pairs: np.zeros(len(pairs), np.bool_))
        load_encoder(recipe, lambda: loaded.found.data)
    encoder = load_encoder(recipe, lambda: loaded.found.data)
    encoder.encode(["The quick brown fox"] * (len(loaded.found.data) // 8))
    with pytest.raises(EncoderMismatchError, match="gigatoken and tokenizers give different ids"):
        encoder.encode(["The quick brown fox"])
    assert not Path(recipe.kept).exists()
    load_encoder(recipe, lambda: loaded.found.data)
    damaged = bytearray(Path(recipe.kept).read_bytes())
    damaged[len(damaged) // 2] ^= 1
    Path(recipe.kept).write_bytes(damaged)
    assert load_encoder(recipe, lambda: loaded.found.data).checked > 0, "prepared and probed again"
