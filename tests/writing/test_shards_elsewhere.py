"""Shards that other processes write, from plans on disk, have the bytes of those that this one writes."""

from __future__ import annotations

import json
import os
import pickle
from pathlib import Path
from typing import Any

import pytest

import packtool
from packtool import engines
from packtool.engines import Engine, Worker, sending
from packtool.errors import DataError
from packtool.formats import names as names_of
from packtool.places.local import LocalPlace
from packtool.writing import array_files, two_passes
from packtool.writing.input_check import InputCheck
from packtool.writing.shards import WriteShard
from tests.stores import contents, document_loss, write_store
from tests.test_golden import RECORDED, make
from tests.writing.cases import KINDS


@pytest.fixture
def anyone(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """In place of a cluster: every task goes through pickle as to another process, and runs twice. The tasks."""
    seen: list[Any] = []

    class Anyone(Engine):
        shares_memory = shares_directories = False

        def __init__(self, scheduler: str, workers: int, *_: object) -> None:
            assert scheduler == "anyone"
            super().__init__(workers)

        def run(self, function: Any, tasks: Any, *, on_advance: Any = None, work: Any = None, **_: Any) -> Any:
            with sending.sent(function, work) as call:
                for number, task in enumerate(tasks):
                    seen.append(task)
                    sending.load.cache_clear()
                    for _again in range(2):
                        there, same = pickle.loads(pickle.dumps((call, task)))
                        result = there(same, Worker(on_advance))
                    assert isinstance(call, sending.Saved)
                    ours = next(each for each in call.directory.parents if each.name == "unfinished")
                    for directory, _names, files in os.walk(ours):  # what a run that is killed here leaves behind
                        for file in files:
                            name = str(Path(directory, file).relative_to(ours))
                            assert names_of.is_ours(f"unfinished/{name}"), name
                    yield number, result

    monkeypatch.setattr(engines, "Cluster", Anyone)
    return seen


def test_every_strategy_and_shuffle(anyone: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(array_files, "LARGE", 1)
    recorded, found = json.loads(RECORDED.read_text(encoding="utf-8")), make(tmp_path, scheduler="anyone")
    assert {name: digest for name, digest in found.items() if digest != recorded[name]} == {}
    assert len(anyone) > 40
    assert sum(type(task) is tuple for task in anyone) > 10


@pytest.mark.parametrize("options", [{}, {"memory": 1 << 12}, {"index_only": True}])
def test_what_trains(anyone: list[Any], tmp_path: Path, options: dict[str, Any]) -> None:
    chats = write_store(tmp_path / "chats", [9, 30, 4] * 20, per_shard=25, loss=document_loss)
    web = write_store(tmp_path / "web", [9, 30, 4] * 5, first=60)
    given: dict[str, Any] = {**KINDS["padding-16"], "shard_tokens": 512, **options}
    packtool.pack([chats, web], tmp_path / "here", **given)
    packtool.pack([chats, web], tmp_path / "there", scheduler="anyone", **given)
    assert len(anyone) > 2
    assert contents(tmp_path / "there") == contents(tmp_path / "here")
    packtool.shuffle(tmp_path / "here", tmp_path / "epoch", epoch=1)
    packtool.shuffle(tmp_path / "here", tmp_path / "epoch-there", epoch=1, scheduler="anyone")
    assert contents(tmp_path / "epoch-there") == contents(tmp_path / "epoch")


def test_what_was_chosen_of_stores(anyone: list[Any], tmp_path: Path) -> None:
    one, two = (write_store(tmp_path / name, [9, 30, 4] * 20, first=first) for name, first in (("a", 0), ("b", 60)))
    options: dict[str, Any] = {"strategy": "bfd", "sequence_length": 32, "mix": ["a=0.5x", "b=2x"], "shard_tokens": 512}
    packtool.pack([one, two], tmp_path / "here", **options)
    packtool.pack([one, two], tmp_path / "there", scheduler="anyone", **options)
    assert len(anyone) > 2
    for file in (tmp_path / "here").iterdir():
        if file.name != "run.json":
            assert (tmp_path / "there" / file.name).read_bytes() == file.read_bytes(), file.name


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


@pytest.mark.parametrize("kind", KINDS)
def test_two_passes(anyone: list[Any], store: Path, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(two_passes, "_BYTES_ON_CLUSTER", 4000)
    options: dict[str, Any] = {**KINDS[kind], "shard_tokens": 64 * 60, "seed": 5}
    beyond: dict[str, Any] = {"scheduler": "anyone", "memory": 20_000, "workers": 2}
    packtool.pack(store, tmp_path / "expected", **options)
    packtool.pack(store, tmp_path / "packed", **options, **beyond)
    shards = len([*(tmp_path / "packed").rglob("segments-*.npy")])
    assert sum(isinstance(task, int) for task in anyone) > 2 + shards, "tasks of the first pass"
    assert contents(tmp_path / "packed") == contents(tmp_path / "expected")
    packtool.pack(store, tmp_path / "other", **{**options, "seed": 6})
    packtool.shuffle(tmp_path / "other", tmp_path / "again", seed=5, **beyond)
    assert contents(tmp_path / "again") == contents(tmp_path / "expected")
    assert not (tmp_path / "packed" / "unfinished").exists()


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
