"""`--order-by`: the order of `sorted`, over stores, mixtures, windows and memory; and its refusals."""

import random
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import packtool
from packtool.choosing.chosen import NO_GROUP
from packtool.choosing.documents import StoredDocuments
from packtool.choosing.order import documents_in_order
from packtool.errors import PacktoolError
from packtool.formats.packed import PackedDataset
from packtool.formats.token_store import Corpus
from packtool.options.order import order_keys
from packtool.planning.metrics.neighbours import Neighbours
from packtool.planning.selecting.mixture import Passes
from packtool.warnings import PacktoolWarning
from tests.choosing.web_and_wiki import pack
from tests.making import write_records
from tests.shell import Shell

Record = dict[str, Any]
REPOS = ["a", "b/c", "é", "𝄞", "Z", "", None]
SIZES = [3, "10", -2.5, "1e2", 0, "-0.0", "nan", None, 1 << 53, (1 << 53) + 1, float(1 << 53), -(1 << 63) - 1]
DATES = ["2024-01", "2023-12", "2024-1", None]
KEYS = ["repo", "-repo", "date", "-date", "size:number", "-size:number", "size"]


def records() -> list[Record]:
    draw = random.Random(0)
    made = []
    for number in range(300):
        record = {"repo": draw.choice(REPOS), "size": draw.choice(SIZES), "date": draw.choice(DATES)}
        made.append({"text": f"text {number} " * (1 + number % 9), **record})
    return made


RECORDS = [records()[:190], records()[190:]]


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    directory = tmp_path_factory.mktemp("order")
    made = []
    for name, part in zip(("one", "two"), RECORDS, strict=True):
        source = directory / f"{name}.in"
        for file, some in (("a", part[:80]), ("b", part[80:])):  # one shard for each
            write_records(source / f"{file}.jsonl", some)
        packtool.tokenize(source, directory / name, columns=["repo", "size", "date"], workers=1, encoder="tokenizers")
        made.append(directory / name)
    return made


def sort_key(record: Record, field: str, *, number: bool) -> Any:
    """What a document is sorted by; None for a missing value."""
    value = record[field]
    if value is None or (number and value == "nan"):
        return None
    return Fraction(value) if number else str(value)


def by_definition(documents: list[int], keys: list[str]) -> list[int]:
    """Sort documents of both stores by the last key first; each sort keeps the order of what is equal."""
    every = [record for part in RECORDS for record in part]
    for key in reversed(order_keys(keys)):
        values = {n: sort_key(every[n], key.field, number=key.number) for n in documents}
        known = sorted((n for n in documents if values[n] is not None), key=values.get, reverse=key.descending)  # type: ignore[arg-type]
        documents = known + [n for n in documents if values[n] is None]
    return documents


def some_keys(draw: random.Random) -> list[str]:
    """Keys of different fields."""
    keys: dict[str, str] = {}
    for key in draw.sample(KEYS, 3):
        keys.setdefault(order_keys([key])[0].field, key)
    return list(keys.values())[: draw.randrange(1, 4)]


@pytest.mark.parametrize("cases", [30, pytest.param(2000, marks=pytest.mark.slow)])
def test_the_order_is_that_of_sorted(stores: list[Path], cases: int) -> None:
    documents, draw = StoredDocuments(Corpus(stores)), random.Random(cases)
    for _ in range(cases):
        keys, share = some_keys(draw), draw.choice([0.05, 0.5, 1])
        taken = [np.array([draw.random() < share for _ in part]) for part in RECORDS]
        taken[0][0] = True
        passes = [Passes(some, draw.choice([1, 2]), np.zeros_like(some)) for some in taken]
        found = documents_in_order(documents, passes, order_keys(keys), 1 << 30)
        wanted = by_definition(np.flatnonzero(np.concatenate(taken)).tolist(), keys)
        assert found.documents.tolist() == wanted, keys
        first = order_keys(keys)[0]
        every = [sort_key(record, first.field, number=first.number) for part in RECORDS for record in part]
        numbers = found.groups[wanted].tolist()
        assert [number == NO_GROUP for number in numbers] == [every[n] is None for n in wanted]
        pairs = {(number, every[n]) for number, n in zip(numbers, wanted, strict=True) if number != NO_GROUP}
        assert len(pairs) == len({number for number, _ in pairs}) == len({value for _, value in pairs})


def test_keys_that_take_more_memory_are_refused(stores: list[Path]) -> None:
    documents = StoredDocuments(Corpus(stores))
    with pytest.raises(PacktoolError, match="take more than the 100 B that may be used to sort them"):
        documents_in_order(documents, None, order_keys(["repo"]), 100)


def documents_of(dataset: PackedDataset) -> list[int]:
    """The documents in the order in which they begin in the rows."""
    (bucket,) = dataset.buckets
    segments = bucket.segments.between(0, bucket.rows)
    return segments.document[(segments.document >= 0) & (segments.start == 0)].tolist()


def test_documents_are_planned_in_the_order(stores: list[Path], tmp_path: Path) -> None:
    keys, wanted = ["-date", "repo"], by_definition(list(range(300)), ["-date", "repo"])
    ordered = pack(stores, tmp_path / "p", strategy="concat", order_by="-date,repo", shuffle=False)
    assert documents_of(ordered) == wanted
    assert ordered.manifest.options["order_by"] == keys
    options: Any = {"strategy": "best-fit-in-order", "order_by": keys, "shuffle": False, "window_tokens": 500}
    windows = pack(stores, tmp_path / "w", **options)
    place = {document: at for at, document in enumerate(wanted)}
    (bucket,) = windows.buckets
    for row in range(bucket.rows):  # a row holds documents of one window, in order but for long ones
        places = [
            place[document] for document in bucket.segments.between(row, row + 1).document.tolist() if document >= 0
        ]
        assert places == sorted(places)
        assert places[-1] - places[0] < 100


@pytest.mark.parametrize("strategy", ["best-fit-in-order", "padding", "bfd"])
@pytest.mark.filterwarnings("ignore::packtool.warnings.PacktoolWarning")
def test_the_report_says_what_share_of_pairs_is_alike(stores: list[Path], tmp_path: Path, strategy: str) -> None:
    weights = ["one=2x", "two=0.5x"]
    packed = pack(stores, tmp_path / "p", strategy=strategy, sequence_length=64, order_by="-repo,date", mix=weights)
    repos = [record["repo"] for part in RECORDS for record in part]
    chosen = packed.chosen()
    stored = np.concatenate([chosen[0], chosen[1] + 190]).tolist()
    (bucket,) = packed.buckets
    pairs = alike = 0
    for row in range(bucket.rows):
        segments, held = bucket.segments.between(row, row + 1), []
        for document, length in zip(segments.document.tolist(), segments.length.tolist(), strict=True):
            held += [stored[document]] * length * (document >= 0)
        pairs += len(held) * (len(held) - 1) // 2
        tokens = Counter(repos[document] for document in held if repos[document] is not None)
        alike += sum(count * (count - 1) // 2 for count in tokens.values())
    wanted = Neighbours("repo", pairs, alike, alike / pairs)
    assert packtool.stats(tmp_path / "p").neighbours == wanted
    packtool.shuffle(tmp_path / "p", tmp_path / "q", epoch=3)
    assert packtool.stats(tmp_path / "q").neighbours == wanted


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"order_by": "nosuch"}, "order_by: 'nosuch' was not kept with the documents of "),
        ({"order_by": "repo:number"}, "a.jsonl:2: 'repo' is 'a', which is not a number"),
        ({"order_by": "repo,-repo"}, "order_by: 'repo' is named twice"),
        ({"order_by": "repo,,date"}, "order_by: '' names no field"),
        ({"order_by": "repo", "epoch": 1}, "order_by: has no effect with epoch"),
    ],
)
def test_refusals(stores: list[Path], tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(PacktoolError) as refused:
        packtool.pack(stores, tmp_path / "p", strategy="concat", sequence_length=32, **options)
    assert message in str(refused.value)
    assert not (tmp_path / "p").exists()


def test_values_of_documents_that_are_left_out_are_not_read(stores: list[Path], tmp_path: Path) -> None:
    where = "repo is None"
    pack(stores, tmp_path / "p", strategy="concat", order_by="repo:number", where=where)


def test_repacking_an_order_is_refused(stores: list[Path], tmp_path: Path) -> None:
    pack(stores, tmp_path / "p", strategy="concat", order_by="repo", index_only=True)
    with pytest.raises(PacktoolError, match="its documents are in the order of repo, which only pack computes"):
        packtool.open(tmp_path / "p", stores=stores).epoch(1, repack=True)


def test_strategies_that_do_not_keep_neighbours_warn(stores: list[Path], tmp_path: Path) -> None:
    with pytest.warns(PacktoolWarning, match="ffd does not keep neighbours together, so that the order changes little"):
        pack(stores, tmp_path / "p", strategy="ffd", order_by="repo")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--strategy", "concat"], "ordered by -date,repo, then rows shuffled, seed 42"),
        (["--strategy", "concat"], "atoms of 32 tokens apart"),
        (["--strategy", "padding"], "of the pairs of tokens in a row are of documents with the same date"),
        (["--strategy", "best-fit-in-order", "--no-shuffle"], "· ordered by -date,repo tokens"),
    ],
)
def test_the_summary_says_the_order(
    stores: list[Path], tmp_path: Path, options: list[str], said: str, shell: Shell
) -> None:
    arguments = ["pack", *map(str, stores), "-o", str(tmp_path / "p"), "-L", "32", "--order-by", "-date,repo"]
    printed = " ".join(shell(*arguments, *options).split())
    assert said in printed
    assert ("--no-shuffle keeps" in printed) == ("--no-shuffle" not in options)
