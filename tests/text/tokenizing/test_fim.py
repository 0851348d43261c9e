"""Texts are rearranged to fill in the middle by their own hash, and taking a store apart gives every text back."""

import json
import random
from collections import Counter
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer

import packtool
from packtool.errors import UsageError
from packtool.formats.packed import PackedDataset
from packtool.formats.token_store import TokenStore
from packtool.text.encoding.special import SENTINELS, sentinels
from packtool.text.tokenizing.fim import FillInTheMiddle, TextPiece, cut, rearranged
from tests.shell import Shell
from tests.stores import contents
from tests.text.encoding import shapes
from tests.text.tokenizing import published
from tests.text.tokenizing.runs import ASSET, documents, jsonl

TEXTS = ("<fim_prefix>", "<fim_suffix>", "<fim_middle>")


def fim(**changes: Any) -> FillInTheMiddle:
    given = {"rate": Fraction(1), "spm_rate": Fraction(1, 2), "seed": 42, "texts": TEXTS, "ids": (1, 2, 3)}
    return FillInTheMiddle(**{**given, **changes})


def spelled(pieces: list[TextPiece]) -> list[int]:
    """A store's ids, if every byte were one: above those of the sentinels."""
    return [number for piece in pieces for number in (*piece.sentinels, *(4 + byte for byte in piece.text.encode()))]


def decoded(ids: list[int]) -> str:
    return bytes(number - 4 for number in ids).decode()


def restored(ids: list[int], split: str) -> str:
    """The text of which these ids were made."""
    before, after, middle = 1, 2, 3
    ends = [place for place, number in enumerate(ids) if number == before] + [len(ids)]
    out = decoded(ids[: ends[0]])
    for at, end in pairwise(ends):
        first = ids.index(after, at)
        second = ids.index(middle, first)
        p, s, last = ids[at + 1 : first], ids[first + 1 : second], ids[second + 1 : end]
        m, separator, following = decoded(last).partition(split or "\0no separator")
        out += decoded(p) + m + decoded(s) + separator + following
    return out


@given(
    st.text(), st.integers(0, 99), st.sampled_from(["", "\n", "<f>"]), st.sampled_from(["", "\1"]), st.fractions(0, 1)
)
def test_a_text_comes_back(text: str, seed: int, split: str, guard: str, rate: Fraction) -> None:
    text = text.encode(errors="ignore").decode()
    how = fim(seed=seed, split=split, guard=guard, rate=rate)
    pieces, prefix_first, suffix_first = rearranged(text, how)
    assert restored(spelled(pieces), split) == text
    assert text or prefix_first + suffix_first == 0, "an empty text is not cut"
    assert [piece.begins for piece in pieces if piece.sentinels == (1,)] == [True] * prefix_first
    assert not any(piece.begins for piece in pieces if 2 in piece.sentinels), "no suffix begins a text"
    assert sum(len(piece.sentinels) for piece in pieces) == 3 * (prefix_first + suffix_first)


def test_each_file_of_a_document_is_rearranged_by_itself() -> None:
    files = ["def a(): pass\n", "", "x = 1\n" * 3, "😀\r\n"]
    how = fim(split="<file>", rate=Fraction(1, 2), seed=1)
    alone = [rearranged(file, how) for file in files]
    assert {len(pieces) for pieces, *_ in alone} > {1}
    joined: list[Any] = []
    for number, (pieces, *_) in enumerate(alone):
        for piece in [*([TextPiece("<file>")] if number else []), *pieces]:
            if joined and joined[-1] is not None and not piece.sentinels and not joined[-1].sentinels:
                joined[-1] = TextPiece(joined[-1].text + piece.text)
            else:
                joined.append(piece)
    assert spelled(rearranged("<file>".join(files), how)[0]) == spelled(joined)


def test_rates_are_within_chance_and_seeds_independent() -> None:
    texts = [f"def function_{number}(): return {number}" for number in range(20_000)]
    how = fim(rate=Fraction(3, 10), spm_rate=Fraction(1, 5))
    cuts = [cut(text, how) for text in texts]
    chosen = [found for found in cuts if found]
    assert abs(len(chosen) - 6000) < 5 * (20_000 * 0.3 * 0.7) ** 0.5
    assert abs(sum(found.suffix_first for found in chosen) - len(chosen) / 5) < 5 * (len(chosen) * 0.16) ** 0.5
    again = [cut(text, fim(seed=43, rate=how.rate)) for text in texts]
    both = sum(a is not None and b is not None for a, b in zip(cuts, again, strict=True))
    assert abs(both - 1800) < 5 * (20_000 * 0.09 * 0.91) ** 0.5
    places = Counter(place for text in (f"abc{n:04d}" for n in range(20_000)) for place in (cut(text, fim()) or ())[:2])
    drawn = [
        Counter(max(a, b) for a in range(8) for b in range(8)),
        Counter(min(a, b) for a in range(8) for b in range(8)),
    ]
    expected = {place: 20_000 * (drawn[0][place] + drawn[1][place]) / 64 for place in range(8)}
    assert all(abs(places[place] - expected[place]) < 6 * expected[place] ** 0.5 for place in range(8))


FAMILIES = {
    known.texts: shapes.with_added(*(AddedToken(text, special=True) for text in known.texts)) for known in SENTINELS
}
BOTH_FORMS = {known.texts: FAMILIES[known.texts] for known in SENTINELS if not known.suffix_leads}
SENTENCES = shapes.normalizers_of(shapes.PREPEND, shapes.SPACES)
MARKED = shapes.sentencepiece(*(AddedToken(text, special=True) for text in SENTINELS[5].texts), normalizer=SENTENCES)


def corpus() -> list[str]:
    draw = random.Random(0)
    words = [
        *("def", " f", "(x):", "\r\n", "\n", "    ", "return", "😀", "👩‍👩‍👧‍👦", "été", "日本", "\U00020000", "'s"),
        *("1", " "),
    ]
    texts = ["".join(draw.choices(words, k=draw.randrange(1, 30))) for _ in range(300)]
    return [*texts, "a", "\r\n", "😀", "x" * 70_000 + " y" * 9000]


def tokenizer_of(folder: Path, spec: dict[str, Any]) -> tuple[Path, Tokenizer]:
    (folder / "tokenizer.json").write_text(json.dumps(spec))
    return folder, Tokenizer.from_str(json.dumps(spec))


@pytest.mark.parametrize(
    "spec", [*BOTH_FORMS.values(), MARKED], ids=[*("-".join(each) for each in BOTH_FORMS), "marked"]
)
def test_ids_are_those_of_each_part(spec: dict[str, Any], tmp_path: Path) -> None:
    folder, tokenizer = tokenizer_of(tmp_path, spec)
    texts = corpus()
    (tmp_path / "a.jsonl").write_bytes(jsonl(texts))
    options: dict[str, Any] = {"tokenizer": folder, "fim_rate": "80%", "workers": 1}
    result = packtool.tokenize(tmp_path / "a.jsonl", tmp_path / "o", **options)
    store = TokenStore(tmp_path / "o")
    known = sentinels(tokenizer.get_vocab())
    names = known.texts
    before, after, middle, *end = ids = tuple(tokenizer.token_to_id(name) for name in names)
    how = fim(texts=names, ids=ids, rate=Fraction(4, 5), guard="\1" if spec is MARKED else "")
    unmarked = tokenizer
    if spec is MARKED:  # suffix and middle begin no text, and get no mark
        unmarked = Tokenizer.from_str(json.dumps(spec | {"normalizer": shapes.normalizers_of(shapes.SPACES)}))

    def encode(text: str, begins: bool = False) -> list[int]:
        found: list[int] = (tokenizer if begins else unmarked).encode(text, add_special_tokens=False).ids
        return found

    forms = [0, 0]
    for number, text in enumerate(texts):
        stored = store.document(number).tolist()[:-1]
        expected = encode(text, begins=True)
        if (found := cut(text, how)) is not None:
            p, m, s = text[: found.begin], text[found.begin : found.end], text[found.end :]
            forms[found.suffix_first] += 1
            expected = [before, *encode(p, begins=True), after, *encode(s), middle, *encode(m, begins=not p)]
            if found.suffix_first:
                rest = encode(p + m, begins=True) if how.guard else encode(p) + encode(m)
                expected = [before, after, *encode(s), middle, *rest]
            expected += end
        assert stored == expected
    assert min(forms) > 50
    counts = result.counts
    assert (counts["fim_prefix_first"], counts["fim_suffix_first"]) == tuple(forms)
    assert (counts["fim_documents"], counts["fim_sentinels"]) == (sum(forms), len(ids) * sum(forms))
    assert "special_tokens" not in counts, "sentinels stand in no text"
    assert store.manifest.options["fim_tokens"] == list(names)


def test_all_else_sees_the_texts_as_they_were(tmp_path: Path) -> None:
    """Filters of texts, hold-outs and duplicates choose the same documents, and Parquet gives the same ids."""
    folder, _ = tokenizer_of(tmp_path, FAMILIES[TEXTS])
    texts = [*corpus(), *corpus()[:40]]
    (tmp_path / "a.jsonl").write_bytes(jsonl(texts))
    pq.write_table(pa.table({"text": texts}), tmp_path / "a.parquet")
    options: dict[str, Any] = {"tokenizer": folder, "workers": 1, "min_words": 3, "max_chars": 60_000}
    plain, moved, other = (tmp_path / name for name in ("plain", "moved", "other"))
    packtool.tokenize(tmp_path / "a.jsonl", plain, **options)
    packtool.tokenize(tmp_path / "a.jsonl", moved, fim_rate="90%", **options)
    packtool.tokenize(tmp_path / "a.parquet", other, fim_rate="90%", **options)
    hashes = [TokenStore(store).origins()["hash"].tolist() for store in (plain, moved, other)]
    assert hashes[0] == hashes[1] == hashes[2]
    assert 0 < len(hashes[0]) < len(texts)
    assert documents(plain) != documents(moved) == documents(other)
    choice: dict[str, Any] = {"holdout": "30%", "drop_duplicates": True, "strategy": "bfd", "sequence_length": 512}
    chosen = []
    for store in (plain, moved):
        packtool.pack(store, tmp_path / f"{store.name}-packed", **choice)
        [numbers] = PackedDataset(tmp_path / f"{store.name}-packed").chosen() or []
        chosen.append(numbers.tolist())
    assert chosen[0] == chosen[1]
    assert 0 < len(chosen[0]) < len(set(hashes[0])), "some are held out"


@pytest.mark.slow
def test_the_bytes_are_the_same_on_a_cluster(tmp_path: Path) -> None:
    folder, _ = tokenizer_of(tmp_path, FAMILIES[TEXTS])
    for part in range(3):
        (tmp_path / f"{part}.jsonl").write_bytes(jsonl(corpus()[part::3]))
    inputs, options = sorted(tmp_path.glob("?.jsonl")), {"tokenizer": folder, "fim_rate": "70%", "fim_split": "\n"}
    packtool.tokenize(inputs, tmp_path / "here", workers=1, **options)
    packtool.tokenize(inputs, tmp_path / "there", scheduler="local", workers=2, **options)
    assert contents(tmp_path / "here") == contents(tmp_path / "there")


def test_a_text_that_spells_a_sentinel_is_warned_of(tmp_path: Path) -> None:
    folder, tokenizer = tokenizer_of(tmp_path, FAMILIES[TEXTS])
    (tmp_path / "a.jsonl").write_bytes(jsonl(["plain text", "it says <fim_suffix>"]))
    with pytest.warns(packtool.warnings.PacktoolWarning, match=r"texts hold special tokens.*<fim_suffix> \(1\)"):
        counts = packtool.tokenize(
            tmp_path / "a.jsonl", tmp_path / "o", tokenizer=folder, workers=1, fim_rate=1, fim_spm_rate=0
        ).counts
    assert (counts["fim_documents"], counts["fim_sentinels"], counts["special_tokens"]) == (1, 3, 1)
    stored = TokenStore(tmp_path / "o").document(1).tolist()
    assert stored[:-1] == tokenizer.encode("it says <fim_suffix>").ids


@pytest.mark.parametrize("form", published.FORMS)
def test_ids_are_those_of_the_prompts_that_models_publish(form: str, tmp_path: Path) -> None:
    known = next(known for known in SENTINELS if all(text in published.FORMS[form] for text in known.texts[:3]))
    folder, tokenizer = tokenizer_of(tmp_path, FAMILIES[known.texts])
    said = (published.prompt(form), published.MIDDLE, *known.texts[3:])
    ids = [number for text in said for number in tokenizer.encode(text).ids]
    assert published.stored(folder, suffix_first=form.endswith("suffix first"), leads=known.suffix_leads) == ids


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fim_rate": 0.5}, "fim_rate: the tokenizer has no known sentinels to fill in the middle. Name three of its"),
        ({"fim_seed": 1}, "fim_seed: has no effect without fim_rate. Give fim_rate with it, such as 50%."),
        ({"fim_rate": 0.5, "fim_tokens": ["!"]}, "fim_tokens: two to four different tokens are needed. "),
        ({"fim_rate": 0.5, "fim_tokens": ["!", "a", "!"]}, "fim_tokens: two to four different tokens are needed. "),
        ({"fim_rate": 0.5, "fim_tokens": ["!", "a", "no such"]}, "fim_tokens: 'no such' is not in the vocabulary. "),
        ({"fim_rate": 0.5, "ids_field": "ids"}, "fim_rate: has no effect on token ids. Leave it out."),
        ({"fim_rate": 0.5, "conversations": "auto"}, "fim_rate: has no effect on conversations. Leave it out."),
        ({"fim_rate": 0.5, "fim_tokens": ["!", "a", "b"], "fim_split": ""}, "fim_split: an empty separator. "),
        ({"fim_rate": 2}, "fim_rate: "),
        (
            {"fim_rate": 0.5, "fim_tokens": ["!", "a"], "fim_spm_rate": 1},
            "fim_spm_rate: with ! and a there is one form alone, suffix first. Leave it out.",
        ),
    ],
)
def test_what_is_refused(options: dict[str, Any], message: str, tmp_path: Path) -> None:
    record = (
        {"messages": [{"role": "user", "content": "a"}]} if "conversations" in options else {"text": "b", "ids": [1]}
    )
    (tmp_path / "a.jsonl").write_text(json.dumps(record) + "\n")
    with pytest.raises(UsageError) as caught:
        packtool.tokenize(tmp_path / "a.jsonl", tmp_path / "o", **options)
    assert str(caught.value).startswith(message)


def test_sentinels_may_be_named_and_the_command_says_what_was_rearranged(tmp_path: Path, shell: Shell) -> None:
    (tmp_path / "a.jsonl").write_bytes(jsonl(["some text", "and more of it"]))
    words = ["--fim-rate", "100%", "--fim-spm-rate", "0", "--fim-tokens", "Ġthe,5,Ġof", "-j", "1"]
    said = shell("tokenize", tmp_path / "a.jsonl", "-o", tmp_path / "o", *words)
    assert "2 documents rearranged to fill in the middle: 2 prefix first, 0 suffix first" in said
    stored = TokenStore(tmp_path / "o").document(0)
    vocab = json.loads(ASSET.read_text())["model"]["vocab"]
    assert np.flatnonzero(np.isin(stored, [vocab["Ġthe"], 5, vocab["Ġof"]])).size == 3
