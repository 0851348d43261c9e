"""Beyond memory: the same bytes as in memory, for any number of partitions, tasks and workers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import packtool
from packtool.engines import Threads
from packtool.places.local import LocalPlace
from packtool.shuffling.atom import atom_shuffles
from packtool.shuffling.permutation import keys
from packtool.storage.delivery import Delivery
from packtool.storage.output import Output
from packtool.storage.packed import PackedDataset
from packtool.storage.pieces import Pieces
from packtool.storage.state import State
from packtool.writing import first_pass, memory
from packtool.writing.input_check import InputCheck
from packtool.writing.partitions import PartitionContents
from packtool.writing.second_pass import PartitionedRows
from packtool.writing.source import PackedSource
from packtool.writing.stored_plan import stored_plans
from tests.stores import contents
from tests.writing.cases import KINDS


@pytest.fixture
def several_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_pass, "_TASK_BYTES", 4000)
    monkeypatch.setattr(first_pass, "_MOST_TASKS", 5)


@pytest.mark.usefixtures("several_tasks")
@pytest.mark.parametrize("kind", KINDS)
def test_the_same_bytes_as_in_memory(store: Path, tmp_path: Path, kind: str) -> None:
    memory, workers = 8000 * len(kind), 1 + len(kind) % 3
    options = {**KINDS[kind], "shard_tokens": 64 * 60}
    packtool.pack(store, tmp_path / "expected", seed=5, **options)
    packtool.pack(store, tmp_path / "packed", seed=5, memory=memory, workers=workers, **options)
    packtool.pack(store, tmp_path / "corpus", shuffle=False, memory=memory, workers=workers, **options)
    packtool.shuffle(tmp_path / "corpus", tmp_path / "shuffled", seed=5, memory=memory, workers=workers)
    packtool.pack(store, tmp_path / "other", seed=6, **options)
    packtool.shuffle(tmp_path / "other", tmp_path / "again", seed=5, memory=memory, workers=workers)
    expected = contents(tmp_path / "expected")
    for name in ("packed", "shuffled", "again"):
        assert contents(tmp_path / name) == expected, name


def test_equal_keys_go_by_index(store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def few(seed: int, purpose: int, epoch: int, first: int, count: int) -> Any:
        return keys(seed, purpose, epoch, first, count) >> np.uint64(62) << np.uint64(62)

    monkeypatch.setattr("packtool.shuffling.atom.keys", few)
    monkeypatch.setattr("packtool.shuffling.permutation.keys", few)
    packtool.pack(store, tmp_path / "corpus", shuffle=False, **KINDS["concat-8"])
    packtool.shuffle(tmp_path / "corpus", tmp_path / "whole")
    packtool.shuffle(tmp_path / "corpus", tmp_path / "parts", memory=30_000)
    assert contents(tmp_path / "parts") == contents(tmp_path / "whole") != contents(tmp_path / "corpus")


def test_partitions_go_when_their_rows_are_written(store: Path, tmp_path: Path) -> None:
    packtool.pack(store, tmp_path / "corpus", shuffle=False, **KINDS["concat-8"])
    (plan,) = stored_plans(PackedDataset(tmp_path / "corpus"))
    (shuffle,) = atom_shuffles([plan], seed=42)
    source = PackedSource(plan, 0)
    budget = memory.Budget(50_000, Threads(1))

    def pieces(name: str) -> Pieces[PartitionContents]:
        return Pieces(Output(LocalPlace(tmp_path), tmp_path, State("shuffle", "k")), name, PartitionContents)

    with InputCheck({}) as check:
        partitions = first_pass.partition(
            source,
            shuffle,
            tmp_path / "scratch",
            pieces,
            budget=budget,
            progress=lambda _: None,
            input_check=check,
            delivery=Delivery(),
        )
    rows = PartitionedRows(partitions, None)
    counts = [len(list((tmp_path / "scratch").rglob("*.atoms")))]
    third = plan.rows // 3
    for written in [(2 * third, plan.rows), (0, third), (third, 2 * third)]:
        rows.written(*written)
        counts.append(len(list((tmp_path / "scratch").rglob("*.atoms"))))
        if written == (0, third):  # what is left still serves the rows between
            assert sum(len(tokens) for _, tokens, _ in rows.batches(third, 2 * third)) == third * 8
    assert counts[0] > counts[1] > counts[2] > counts[3] == 0
