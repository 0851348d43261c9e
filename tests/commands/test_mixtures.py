"""`pack` of chosen documents: every strategy, accounted for, verified, and without a leak."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import packtool
from packtool.errors import PacktoolError, UsageError
from packtool.packing import STRATEGIES
from packtool.storage.packed import PackedDataset
from packtool.storage.token_store import Corpus, TokenStore


def write(path: Path, texts: list[str]) -> Path:
    path.with_suffix(".jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    packtool.tokenize(path.with_suffix(".jsonl"), path, workers=1, encoder="tokenizers")
    return path


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two stores that share texts, and have copies of their own."""
    top = tmp_path_factory.mktemp("stores")
    shared = [f"a text that both have, number {n}" for n in range(40)]
    web = [f"web page {n} " * (1 + n % 7) for n in range(150)]
    wiki = [f"article {n} " * (1 + n % 11) for n in range(60)]
    return [write(top / "web", [*web, *shared, *web[:10]]), write(top / "wiki", [*shared[::-1], *wiki])]


def pack(stores: list[Path], output: Path, **options: Any) -> PackedDataset:
    packtool.pack(stores, output, **{"strategy": "bfd", "sequence_length": 32, **options})
    return PackedDataset(output)


def packed(dataset: PackedDataset, stores: list[Path]) -> list[tuple[int, int]]:
    """(store, document) of every document of a dataset, as its rows have them."""
    chosen = dataset.chosen() or [np.arange(TokenStore(path).documents) for path in stores]
    every = [(store, int(document)) for store, part in enumerate(chosen) for document in part]
    rows = {document for bucket in dataset.buckets for document in bucket.segments(0, bucket.rows).document.tolist()}
    return [every[document] for document in sorted(rows) if document >= 0]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_strategy_packs_a_mixture_that_verifies_against_its_stores(
    stores: list[Path], tmp_path: Path, strategy: str
) -> None:
    options: dict[str, Any] = {"strategy": strategy, "mix": ["web=0.4", "wiki=2.5"]}
    if strategy in ("buckets", "length-buckets"):
        options |= {"buckets": [16, 32], "sequence_length": None}
    dataset = pack(stores, tmp_path / "p", **options)
    choice = dataset.manifest.choice
    assert choice is not None
    web, wiki = choice.sources
    assert abs(web.chosen_tokens - 0.4 * web.tokens) <= 30
    assert abs(wiki.chosen_tokens - 2.5 * wiki.tokens) <= 30
    assert (web.repeated_tokens, wiki.repeated_tokens) == (0, wiki.chosen_tokens - wiki.tokens)
    assert dataset.manifest.ledger.input == web.chosen_tokens + wiki.chosen_tokens - dataset.manifest.documents
    assert packtool.verify(tmp_path / "p", store=stores).problems == []
    packtool.shuffle(tmp_path / "p", tmp_path / "s", method="atom", epoch=1)
    assert packtool.verify(tmp_path / "s", store=stores).problems == []


def test_a_mixture_is_the_same_for_any_number_of_workers_and_memory(stores: list[Path], tmp_path: Path) -> None:
    def contents(path: Path) -> dict[str, bytes]:
        return {file.name: file.read_bytes() for file in path.iterdir() if file.name != "run.json"}

    options: dict[str, Any] = {"mix": ["web=1.3", "wiki=3"], "holdout": "10%", "strategy": "concat"}
    pack(stores, tmp_path / "one", workers=1, **options)
    pack(stores, tmp_path / "two", workers=2, memory="20kB", **options)
    assert contents(tmp_path / "one") == contents(tmp_path / "two")


@pytest.mark.parametrize("amount", ["10%", "30 documents", "500 tokens"])
def test_no_text_that_is_held_out_is_trained_on(stores: list[Path], tmp_path: Path, amount: str) -> None:
    opened = [TokenStore(path) for path in stores]
    sides, texts = {}, {}
    for part in ("train", "holdout"):
        sides[part] = packed(pack(stores, tmp_path / part, holdout=amount, part=part), stores)
        texts[part] = {tuple(opened[s].document(d).tolist()) for s, d in sides[part]}
    everything = {tuple(store.document(d).tolist()) for store in opened for d in range(store.documents)}
    if amount.endswith("%"):  # a number is reached in each store on its own
        assert not texts["train"] & texts["holdout"]
    assert texts["train"] | texts["holdout"] == everything
    assert len(sides["train"]) + len(sides["holdout"]) == sum(store.documents for store in opened)
    assert sides["holdout"]


def test_copies_shards_and_lists(stores: list[Path], tmp_path: Path) -> None:
    opened = [TokenStore(path) for path in stores]
    once = packed(pack(stores, tmp_path / "once", drop_duplicates=True), stores)
    texts = [tuple(opened[s].document(d).tolist()) for s, d in once]
    assert len(texts) == len(set(texts)) == 150 + 40 + 60
    shards = [packed(pack(stores, tmp_path / f"s{n}", shard_of=f"{n}/3"), stores) for n in (1, 2, 3)]
    assert sorted(each for shard in shards for each in shard) == [
        (s, d) for s in (0, 1) for d in range(opened[s].documents)
    ]
    (tmp_path / "list").write_text("web.jsonl:2\n\nwiki.jsonl:100\n")
    dataset = pack(stores, tmp_path / "without", exclude=tmp_path / "list")
    assert {(0, 1), (1, 99)}.isdisjoint(packed(dataset, stores))
    assert dataset.manifest.choice is not None
    assert [source.excluded for source in dataset.manifest.choice.sources] == [1, 1]


def test_a_budget_in_shares(stores: list[Path], tmp_path: Path) -> None:
    dataset = pack(stores, tmp_path / "p", mix=["web=0.75", "wiki=0.25"], tokens=2000)
    assert dataset.manifest.choice is not None
    for source, wanted in zip(dataset.manifest.choice.sources, (1500, 500), strict=True):
        assert abs(source.chosen_tokens - wanted) <= 30


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mix": ["web=-1", "wiki=1"]}, "the weight of web is '-1', not a number from 0"),
        ({"mix": ["web=nan", "wiki=1"]}, "the weight of web is 'nan', not a number from 0"),
        ({"mix": ["web=1"]}, "wiki has no weight"),
        ({"mix": ["web=1", "code=1"]}, "there is no store 'code' among the inputs"),
        ({"mix": ["web=1", "web=1", "wiki=1"]}, "web has two weights"),
        ({"mix": ["web"]}, "'web' is not a weight"),
        ({"mix": ["web=0", "wiki=0"]}, "no document is left"),
        ({"tokens": "1k"}, "there are no shares of it"),
        ({"mix": ["web=0.5", "wiki=0.4"], "tokens": "1k"}, "the shares sum to 0.9"),
        ({"mix": ["web=0.5", "wiki=0.5"], "tokens": "1M"}, "epochs of web. Give fewer --tokens"),
        ({"mix": ["web=0.5", "wiki=0.5"], "tokens": "-3"}, "'-3' is not a number of tokens"),
        ({"holdout": "100%"}, "100% holds out all 200 documents of web"),
        ({"holdout": "much"}, "'much' is not a part to hold out"),
        ({"part": "holdout"}, "has no effect without --holdout"),
        ({"shard_of": "0/4"}, "'0/4' is not a shard"),
        ({"exclude": "/nowhere"}, "can't be read (no such file or directory)"),
    ],
)
def test_bad_choices_are_one_line_before_any_work(
    stores: list[Path], tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(PacktoolError) as caught:
        pack(stores, tmp_path / "p", **options)
    assert message in str(caught.value)
    assert not (tmp_path / "p").exists()


def test_lists_and_stores_that_do_not_fit(stores: list[Path], tmp_path: Path) -> None:
    (tmp_path / "list").write_text("web.jsonl:2\nweb.jsonl:2000\n")
    with pytest.raises(PacktoolError, match=r"list:2: no store has a document web\.jsonl:2000"):
        pack(stores, tmp_path / "p", exclude=tmp_path / "list")
    (tmp_path / "list").write_text("web.jsonl\n")
    with pytest.raises(PacktoolError, match=r"list:1: 'web\.jsonl' is not a document"):
        pack(stores, tmp_path / "p", exclude=tmp_path / "list")
    packtool.tokenize(stores[0].with_suffix(".jsonl"), tmp_path / "plain", provenance=False, workers=1)
    with pytest.raises(UsageError, match="made with --no-provenance"):
        pack([tmp_path / "plain"], tmp_path / "p", holdout="1%")
    assert len(Corpus([tmp_path / "plain"]).lengths()) == 200


def test_every_piece_leads_to_its_line_and_back(stores: list[Path], tmp_path: Path) -> None:
    dataset = pack(stores, tmp_path / "p", mix=["web=0.5", "wiki=2"])
    lines = {path.name: path.with_suffix(".jsonl").read_text().splitlines() for path in stores}
    seen: dict[str, list[int]] = {}
    for row in range(dataset.buckets[0].rows):
        for piece in packtool.show(tmp_path / "p", row, store=stores).pieces:
            if piece.kind == "document":
                assert piece.origin is not None
                file, _, line = piece.origin.rpartition(":")
                text = json.loads(lines[file.removesuffix(".jsonl")][int(line) - 1])["text"]
                assert piece.text is not None
                assert piece.text.removesuffix("<|endoftext|>") in text
                seen.setdefault(piece.origin, []).append(row)
    for origin, rows in list(seen.items())[::20]:
        found = packtool.find(tmp_path / "p", origin, store=stores)
        assert [place.row for place in found.places] == rows
        assert len(found.documents) == (2 if origin.startswith("wiki") else 1)
    left_out = next(f"web.jsonl:{n}" for n in range(1, 201) if f"web.jsonl:{n}" not in seen)
    assert packtool.find(tmp_path / "p", left_out, store=stores).documents == []
    for record, message in (
        ("web.jsonl", "'web.jsonl' is not FILE:LINE"),
        ("a.jsonl:1", "no store has an input 'a.jsonl'"),
    ):
        with pytest.raises(UsageError, match=message):
            packtool.find(tmp_path / "p", record, store=stores)
    with pytest.raises(UsageError, match="packed from other stores"):
        packtool.find(tmp_path / "p", "web.jsonl:1", store=stores[:1])
