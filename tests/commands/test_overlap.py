"""`find --overlap`: the documents that share a run of tokens, as a naive search finds them, whatever the hash."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import packtool
from packtool.commands import shared_runs
from packtool.commands.shared_runs import SharedRun, TextRuns
from packtool.errors import PacktoolError
from packtool.formats.token_store import TokenStore
from packtool.places.npy import FileEntry
from packtool.places.place import MappedFile, Place
from tests.choosing.web_and_wiki import pack, store_of
from tests.shell import Shell

Documents = list[list[int]]


def naive(documents: Documents, others: Documents, size: int, skipped: int) -> list[SharedRun]:
    """The first shared run of each document, by comparing every run with every run."""
    found = []
    for number, document in enumerate(documents):
        places = [
            SharedRun(number, start, other, other_start)
            for start in range(skipped, len(document) - size)
            for other, text in enumerate(others)
            for other_start in range(skipped, len(text) - size)
            if document[start : start + size] == text[other_start : other_start + size]
        ]
        found += places[:1]
    return found


def arrays(documents: Documents) -> tuple[np.ndarray, np.ndarray]:
    """Their tokens and lengths."""
    lengths = np.array([len(document) for document in documents], np.uint32)
    return np.array([token for document in documents for token in document], np.uint16), lengths


@pytest.mark.parametrize("cases", [150, pytest.param(5000, marks=pytest.mark.slow)])
def test_shared_runs_are_those_of_a_naive_search(cases: int, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(cases)
    monkeypatch.setattr(shared_runs, "_BLOCK", 7)  # documents go on from block to block
    hits = 0
    for case in range(cases):
        skipped = draw.randrange(2)

        def made(skipped: int = skipped) -> Documents:
            lengths = [draw.randrange(9) for _ in range(draw.randrange(1, 6))]
            return [[9] * skipped + [draw.randrange(3) for _ in range(length)] + [0] for length in lengths]

        documents, others, size = made(), made(), draw.randrange(1, 6)
        multiplier = [1 << 63, shared_runs._MULTIPLIER][case % 2]  # the first makes runs of other tokens collide
        runs = TextRuns(*arrays(others), size=size, skipped=skipped, multiplier=multiplier)
        wanted = naive(documents, others, size, skipped)
        assert runs.shared(*arrays(documents)) == wanted, (documents, others, size, skipped)
        hits += len(wanted)
    assert hits > cases / 2


WORDS = [f"w{number}" for number in range(500)]


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A corpus of 60 documents, every tenth with a part of an evaluation, in three files; and the evaluation."""
    draw = random.Random(1)
    directory = tmp_path_factory.mktemp("overlap")
    asked = [" ".join(draw.choices(WORDS, k=30)) for _ in range(6)]
    texts = [" ".join(draw.choices(WORDS, k=draw.randrange(5, 60))) for _ in range(60)]
    for number in range(0, 60, 10):
        texts[number] += " " + " ".join(asked[number // 10].split()[5:25]) + " and so on"
    return [store_of(directory / "web", texts), store_of(directory / "eval", [*asked, "short"])]


def test_the_list_leaves_out_what_overlaps(stores: list[Path], tmp_path: Path, shell: Shell) -> None:
    listed = shell("find", stores[0], "--overlap", stores[1], "--tokens", 13)
    said = shell.err
    assert said == (
        "6 of 60 documents share a run of 13 tokens\n"
        "1 of the 7 documents to compare with are shorter, so nothing shares a run with them: --exclude their store "
        "for exact copies of them, or give fewer --tokens\n"
    )
    names = [line.partition("  # ")[0] for line in listed.splitlines()]
    assert names == [f"web.jsonl:{number + 1}" for number in range(0, 60, 10)]
    (tmp_path / "list.txt").write_text(listed)
    choice = pack(stores[:1], tmp_path / "p", exclude=tmp_path / "list.txt").manifest.choice
    assert choice.sources[0].left_out["excluded"].documents == 6
    found = packtool.find(stores[0], overlap=stores[1]).overlaps
    web, asked = map(TokenStore, stores)
    for each in found.found:
        here = web.document(each.document)[each.start : each.start + 13]
        assert here.tolist() == asked.document(each.other_document)[each.other_start : each.other_start + 13].tolist()
    first = found.found[0]
    assert f"{first.origin}  # tokens {first.start} to {first.start + 12} are tokens {first.other_start} to " in listed


def test_several_stores_to_compare_with_are_told_apart(stores: list[Path]) -> None:
    found = packtool.find(stores[1], overlap=stores, tokens=20).overlaps
    others = [(each.other_store, each.other_document, each.other_start) for each in found.found]
    assert others == [(str(stores[1]), number, 0) for number in range(6)]


def test_what_has_no_overlap_to_list_is_refused(
    stores: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packtool.tokenize(stores[0].with_suffix(".jsonl"), tmp_path / "bare", provenance=False, workers=1)
    packtool.tokenize(stores[0].with_suffix(".jsonl"), tmp_path / "bos", bos_token=1, workers=1)
    pack(stores[:1], tmp_path / "packed")
    cases = {
        ("bare", "eval"): "no-provenance",
        ("web", "bos"): "stores-differ",
        ("packed", "eval"): "not-a-store",
        ("web", "packed"): "not-a-store",
    }
    paths = {path.name: path for path in [*stores, tmp_path / "bare", tmp_path / "bos", tmp_path / "packed"]}
    for (store, other), code in cases.items():
        with pytest.raises(PacktoolError) as raised:
            packtool.find(paths[store], overlap=paths[other])
        assert raised.value.code == code
    with pytest.raises(PacktoolError, match=r"neither a document nor overlap is given\. Name a document by its id or"):
        packtool.find(stores[0])
    monkeypatch.setattr("packtool.commands.overlap.machine_memory", lambda: 10_000)
    with pytest.raises(PacktoolError, match=r"half of this machine's memory is 5 kB\. Name the smaller store"):
        packtool.find(stores[0], overlap=stores[1])


def test_origins_are_opened_once_for_all_that_is_found_in_a_shard(
    stores: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Opening them for each document took most of the time, where many overlap."""
    opened = []
    real = MappedFile.opened.__func__  # type: ignore[attr-defined]

    def noted(cls: type[MappedFile], place: Place, entry: FileEntry, *more: Any) -> Any:
        opened.append((str(place), entry.name))
        return real(cls, place, entry, *more)

    monkeypatch.setattr(MappedFile, "opened", classmethod(noted))
    found = packtool.find(stores[0], overlap=stores[1], tokens=2).overlaps
    assert found is not None
    assert len(found.found) > 5
    assert len(opened) == len(set(opened)) > 0
    store, other = map(TokenStore, stores)
    for each in found.found:
        assert each.origin == store.origin(each.document)
        assert each.other_origin == other.origin(each.other_document)
