"""The longest documents and the most repeated texts, against a sort of all of them."""

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import packtool
from packtool.errors import UsageError
from packtool.formats.packed import PackedDataset
from packtool.formats.token_store import TokenStore
from tests.making import Make
from tests.shell import Shell
from tests.stores import write_store

CHOICES: list[dict[str, Any]] = [{}, {"min_tokens": 4}, {"where": "line > 9"}, {"mix": ["a=3x", "b=0.5x"], "seed": 1}]


@pytest.fixture
def stores(make: Make) -> list[Path]:
    draw = random.Random(3)

    def records(name: str) -> list[dict[str, Any]]:
        texts = ["word " * draw.choice([1, 2, 3, 5, 9]) + draw.choice("xyz") for _ in range(60)]
        return [{"id": f"{name}{number}", "text": text} for number, text in enumerate(texts)]

    place = make({name: records(name) for name in "ab"}, {"id_field": "id", "encoder": "tokenizers"})
    return [place / "a", place / "b"]


def documents(stores: list[Path], choice: dict[str, Any], packed: Path) -> list[dict[str, Any]]:
    """What a report says of each document that is taken, with its tokens, which stand for its text."""
    chosen = None
    if choice:
        packtool.pack(stores, packed, strategy="concat", sequence_length=64, **choice)
        chosen = PackedDataset(packed).chosen()
    every = []
    for source, path in enumerate(stores):
        store = TokenStore(path)
        taken = range(store.documents) if chosen is None else sorted(set(chosen[source].tolist()))
        for number in taken:
            text = store.document(number).tolist()
            known = {"store": path.name, "document": number, "origin": store.origin(number), "tokens": len(text)}
            every.append({**known, "id": f"{path.name}{number}", "text": tuple(text)})
    return every


@pytest.mark.parametrize("choice", CHOICES, ids=str)
def test_what_stands_out_is_what_a_sort_finds(stores: list[Path], choice: dict[str, Any], tmp_path: Path) -> None:
    every = documents(stores, choice, tmp_path / "packed")
    times = Counter(each["text"] for each in every)
    first: dict[Any, dict[str, Any]] = {}
    for each in every:
        first.setdefault(each["text"], each)
    ranked = sorted(first.values(), key=lambda each: -times[each["text"]])
    for most in (1, 5, 1000):
        report = packtool.stats(stores, longest=most, most_repeated=most, **choice)
        for found, expected in (
            (report.longest, sorted(every, key=lambda each: -each["tokens"])),
            (report.most_repeated, [each for each in ranked if times[each["text"]] > 1]),
        ):
            assert [(each.store, each.document) for each in found] == [
                (each["store"], each["document"]) for each in expected[:most]
            ]
            for each, known in zip(found, expected, strict=False):
                assert (each.origin, each.id, each.tokens) == (known["origin"], known["id"], known["tokens"])
        for each in report.most_repeated:
            assert each.documents == times[tuple(TokenStore(stores["ab".index(each.store)]).document(each.document))]


def test_lists_are_printed_and_on_the_page(stores: list[Path], tmp_path: Path, shell: Shell) -> None:
    page = tmp_path / "x.html"
    for written in (
        shell("stats", *stores, "--longest", "2", "--most-repeated", "3", "--html", page),
        page.read_text(),
    ):
        for title in ("Longest documents", "Most repeated texts"):
            assert title in written
    report = packtool.stats(stores[0].with_suffix(".jsonl"), longest=1)  # text files have lines, too
    assert report.longest[0].origin == packtool.stats(stores[0], longest=1).longest[0].origin
    (tmp_path / "one.jsonl").write_text('{"text": "alone"}\n')
    assert "No two documents have the same text.\n" in shell("stats", tmp_path / "one.jsonl", "--most-repeated", "3")


def test_repeated_texts_need_provenance(stores: list[Path], tmp_path: Path) -> None:
    nameless = write_store(tmp_path / "nameless", [3, 9, 5])
    [longest] = packtool.stats(nameless, longest=1).longest
    assert (longest.document, longest.origin, longest.id, longest.tokens) == (1, None, None, 9)
    with pytest.raises(UsageError, match=r"nameless is made with provenance=False"):
        packtool.stats(nameless, most_repeated=1)
