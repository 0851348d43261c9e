"""Beyond memory: the same bytes as in memory, for any number of partitions, tasks and workers."""

from concurrent.futures import wait
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import packtool
from packtool.engines import Threads
from packtool.formats.packed import PackedDataset
from packtool.outputs.output import Output, State
from packtool.outputs.pieces import Pieces
from packtool.places.local import LocalPlace
from packtool.planning.shuffling.atom import atom_shuffles
from packtool.planning.shuffling.permutation import keys
from packtool.rows.stored_plan import stored_plans
from packtool.rows.unit_source import PackedSource
from packtool.writing import memory, two_passes
from packtool.writing.input_check import InputCheck
from packtool.writing.two_passes import PartitionContents, PartitionedRows
from tests.stores import contents
from tests.writing.cases import KINDS, counting


@pytest.mark.parametrize("kind", ["concat-8", "padding-128"])
def test_equal_keys_go_by_index(store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    def few(seed: int, purpose: int, epoch: int, first: int, count: int) -> Any:
        return keys(seed, purpose, epoch, first, count) >> np.uint64(62) << np.uint64(62)

    monkeypatch.setattr("packtool.planning.shuffling.atom.keys", few)
    monkeypatch.setattr("packtool.planning.shuffling.permutation.keys", few)
    packtool.pack(store, tmp_path / "corpus", shuffle=False, **KINDS[kind])
    packtool.shuffle(tmp_path / "corpus", tmp_path / "whole")
    packtool.shuffle(tmp_path / "corpus", tmp_path / "parts", memory=30_000)
    assert contents(tmp_path / "parts") == contents(tmp_path / "whole") != contents(tmp_path / "corpus")


def test_partitions_go_when_their_rows_are_written(store: Path, tmp_path: Path) -> None:
    packtool.pack(store, tmp_path / "corpus", shuffle=False, **KINDS["concat-8"])
    (plan,) = stored_plans(PackedDataset(tmp_path / "corpus"))
    (shuffle,) = atom_shuffles([plan], seed=42)
    source = PackedSource(plan, 0)
    budget = memory.Budget(50_000, Threads(1))

    output = Output(LocalPlace(tmp_path), tmp_path, tmp_path, State("shuffle", "k"))

    def pieces(name: str) -> Pieces[PartitionContents]:
        return Pieces(output, name, PartitionContents)

    with InputCheck([]) as check:
        partitions = two_passes.partition(
            source,
            shuffle,
            "scratch",
            tmp_path,
            pieces,
            budget=budget,
            progress=lambda _: None,
            input_check=check,
            delivery=output.passing(Threads(1), far=False),
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


def test_finished_parts_and_shards_are_not_done_again(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(two_passes, "_TASK_BYTES", 4000)
    keep = InputCheck.keep

    def keep_at_once(check: InputCheck, action: Any) -> None:
        wait([check._done])  # else it depends on how busy the machine is what is noted before the failure
        keep(check, action)

    monkeypatch.setattr(InputCheck, "keep", keep_at_once)
    options = {**KINDS["concat-8"], "shard_tokens": 64 * 15}
    packtool.pack(store, tmp_path / "corpus", shuffle=False, **options)
    packtool.shuffle(tmp_path / "corpus", tmp_path / "expected")
    run: dict[str, Any] = {"memory": 30_000, "workers": 1}

    read = counting(monkeypatch, "packtool.writing.two_passes.scratch.append", fail_at=800)
    with pytest.raises(OSError, match="counted"):
        packtool.shuffle(tmp_path / "corpus", tmp_path / "out", **run)
    notes = sorted((tmp_path / "out" / "unfinished").glob("pieces/partitions-*/*.json"))
    assert notes
    assert not (tmp_path / "out" / "manifest.json").exists()
    read.calls = 0
    written = counting(monkeypatch, "packtool.writing.shards.PackedShardWriter", fail_at=3)
    with pytest.raises(OSError, match="counted"):
        packtool.shuffle(tmp_path / "corpus", tmp_path / "out", resume=True, **run)
    done = len(list((tmp_path / "out" / "unfinished").glob("pieces/shard/*.json")))
    assert done  # the second may have been on its way to the disk
    assert read.calls > 0

    read.calls = written.calls = 0
    packtool.shuffle(tmp_path / "corpus", tmp_path / "out", resume=True, **run)
    assert read.calls == 0
    shards = len(PackedDataset(tmp_path / "expected").buckets[0].shards.entry.shards)
    assert written.calls == shards - done > 0
    assert contents(tmp_path / "out") == contents(tmp_path / "expected")
    assert not (tmp_path / "out" / "unfinished").exists()
    packtool.shuffle(tmp_path / "corpus", tmp_path / "out", resume=True, **run)
    assert written.calls == shards - done


def test_rows_may_be_written_before_all_input_is_checked(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packtool.pack(store, tmp_path / "expected", **KINDS["concat-8"])
    monkeypatch.setattr(InputCheck, "keep", lambda check, action: check._kept.append(action))
    packtool.pack(store, tmp_path / "out", **KINDS["concat-8"], memory=30_000, workers=1)
    assert contents(tmp_path / "out") == contents(tmp_path / "expected")
