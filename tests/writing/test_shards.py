"""Rows to shards: what an interrupted run wrote is kept only where it is, bit for bit, what that run wrote."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import packtool
from packtool.engines import Worker
from packtool.errors import DataError
from packtool.places.local import LocalPlace
from packtool.planning.packing.plans import StreamPlan
from packtool.writing.input_check import InputCheck
from packtool.writing.shards import WriteShard, rows_per_shard
from tests.interrupting import DAMAGES, interrupted
from tests.making import Make, drawn_lengths
from tests.stores import contents, write_store


@pytest.mark.parametrize(("tokens", "rows"), [(1, 1), (64, 1), (127, 1), (128, 2)])
def test_a_shard_holds_a_row_at_least(tokens: int, rows: int) -> None:
    assert rows_per_shard(StreamPlan(64, 64, np.array([0, 640])), tokens) == rows


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("pattern", ["tokens-*", "segments-*", "segment_o*", "unfinished/pieces/shard/*"])
def test_a_shard_that_changed_is_made_again(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: Callable[[Path], object], pattern: str
) -> None:
    options: dict[str, Any] = {"strategy": "bfd", "sequence_length": 64, "shard_tokens": 1024}
    place = make(drawn_lengths(200, 59, seed=5), whole=options)
    interrupted(monkeypatch, packtool.pack, place / "store", tmp_path / "out", **options)
    for file in sorted((tmp_path / "out").glob(pattern))[1:3]:
        damage(file)
    packtool.pack(place / "store", tmp_path / "out", **options, resume=True)
    assert contents(tmp_path / "out") == contents(place / "whole")


def test_shards_that_other_processes_finished_are_kept(
    anyone: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = write_store(tmp_path / "store", [50] * 100)
    options: dict[str, Any] = {"strategy": "concat", "sequence_length": 64, "shard_tokens": 1024, "scheduler": "anyone"}
    called, kept = WriteShard.__call__, InputCheck.keep

    def keep_now(self: InputCheck, action: Any) -> None:
        kept(self, action)
        self.require_sound()

    def fail(self: WriteShard, task: Any, worker: Worker) -> Any:
        if task == 3:
            raise DataError("x", "the worker fails", remedy="")
        return called(self, task, worker)

    with monkeypatch.context() as patch, pytest.raises(DataError, match="the worker fails"):
        patch.setattr(WriteShard, "__call__", fail)
        patch.setattr(InputCheck, "keep", keep_now)
        packtool.pack(store, tmp_path / "out", **options)
    anyone.clear()
    damaged = tmp_path / "out" / "tokens-00001.npy"
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"x")
    packtool.pack(store, tmp_path / "out", resume=True, **options)
    held = [
        [each.name for each in task[1]]
        for task in anyone
        if isinstance(task, tuple) and isinstance(task[0], LocalPlace)
    ]
    assert [names[0] for names in held] == [f"tokens-0000{number}.npy" for number in range(3)], "hashed by workers"
    assert [task for task in anyone if isinstance(task, int)] == [1, 3, 4]
    assert packtool.verify(tmp_path / "out").problems == []
