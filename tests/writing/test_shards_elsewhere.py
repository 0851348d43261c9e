"""Shards that other processes write, from plans on disk, have the bytes of those that this one writes.

`test_same_rows.py` has the law; here is what is kept of a run that stopped, and every recorded dataset.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import packtool
from packtool.engines import Worker
from packtool.errors import DataError
from packtool.places.local import LocalPlace
from packtool.writing import array_files, two_passes
from packtool.writing.input_check import InputCheck
from packtool.writing.shards import WriteShard
from tests.stores import write_store
from tests.test_golden import RECORDED, make
from tests.writing.cases import KINDS


def test_every_strategy_and_shuffle(anyone: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(array_files, "LARGE", 1)
    recorded, found = json.loads(RECORDED.read_text(encoding="utf-8")), make(tmp_path, scheduler="anyone")
    assert {name: digest for name, digest in found.items() if digest != recorded[name]} == {}
    assert len(anyone) > 40
    assert sum(type(task) is tuple for task in anyone) > 10


def test_finished_shards_are_kept(anyone: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_what_the_two_passes_finished_is_kept(
    anyone: list[Any], store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(two_passes, "_BYTES_ON_CLUSTER", 4000)
    options: dict[str, Any] = {**KINDS["concat"], "memory": 20_000, "scheduler": "anyone"}
    called = two_passes.FirstPass.__call__

    def fail(self: two_passes.FirstPass, number: int, worker: Worker) -> Any:
        if number == 3:
            raise DataError("x", "the worker fails", remedy="")
        return called(self, number, worker)

    with monkeypatch.context() as patch, pytest.raises(DataError, match="the worker fails"):
        patch.setattr(two_passes.FirstPass, "__call__", fail)
        packtool.pack(store, tmp_path / "out", check_input=False, **options)
    anyone.clear()
    packtool.pack(store, tmp_path / "out", resume=True, check_input=False, **options)
    assert anyone[0] == 3, "the first pass goes on where it failed"
    assert anyone.count(0) == 1, "a shard, and no task of the first pass"
    packtool.verify(tmp_path / "out")
