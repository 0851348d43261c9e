"""Shards that other processes write, from plans on disk, have the bytes of those that this one writes."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import packtool
from packtool import cluster, executor
from packtool.errors import DataError
from packtool.writing import saved_rows
from packtool.writing.shards_on_cluster import ShardOnWorker, ShardTask
from tests.stores import write_store
from tests.test_golden import RECORDED, make


@pytest.fixture
def anyone(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """In place of a cluster: every task goes through pickle as to another process, and runs twice. The tasks."""
    seen: list[Any] = []

    def run(
        function: Callable[[Any], Any], tasks: Sequence[Any], where: cluster.Cluster, **options: Any
    ) -> Iterator[tuple[int, Any]]:
        assert where.scheduler == "anyone"
        assert options["shared"].exists()
        for number, task in enumerate(tasks):
            seen.append(task)
            saved_rows.load_rows.cache_clear()
            for _ in range(2):
                elsewhere, same = pickle.loads(pickle.dumps((function, task)))
                ((_, result),) = executor.run(elsewhere, [same], on_advance=options.get("on_advance"))
            yield number, result

    monkeypatch.setattr(cluster, "run", run)
    return seen


def test_every_strategy_and_shuffle(anyone: list[Any], tmp_path: Path) -> None:
    recorded, found = json.loads(RECORDED.read_text(encoding="utf-8")), make(tmp_path, scheduler="anyone")
    assert {name: digest for name, digest in found.items() if digest != recorded[name]} == {}
    assert len(anyone) > 40


def test_what_was_chosen_of_stores(anyone: list[Any], tmp_path: Path) -> None:
    one, two = (write_store(tmp_path / name, [9, 30, 4] * 20, first=first) for name, first in (("a", 0), ("b", 60)))
    options: dict[str, Any] = {"strategy": "bfd", "sequence_length": 32, "mix": ["a=0.5", "b=2"], "shard_tokens": 512}
    packtool.pack([one, two], tmp_path / "here", **options)
    packtool.pack([one, two], tmp_path / "there", scheduler="anyone", **options)
    assert len(anyone) > 2
    for file in (tmp_path / "here").iterdir():
        if file.name != "run.json":
            assert (tmp_path / "there" / file.name).read_bytes() == file.read_bytes(), file.name


def test_finished_shards_are_kept(anyone: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = write_store(tmp_path / "store", [50] * 100)
    options: dict[str, Any] = {"strategy": "concat", "sequence_length": 64, "shard_tokens": 1024, "scheduler": "anyone"}
    called = ShardOnWorker.__call__

    def fail(self: ShardOnWorker, task: Any) -> Any:
        if task.number == 3:
            raise DataError("x", "the worker fails", remedy="")
        return called(self, task)

    with monkeypatch.context() as patch, pytest.raises(DataError, match="the worker fails"):
        patch.setattr(ShardOnWorker, "__call__", fail)
        packtool.pack(store, tmp_path / "out", **options)
    anyone.clear()
    packtool.pack(store, tmp_path / "out", resume=True, **options)
    assert [task.number for task in anyone if isinstance(task, ShardTask)] == [3, 4]
    packtool.verify(tmp_path / "out")


def test_a_changed_plan_is_not_believed(tmp_path: Path) -> None:
    digest = saved_rows.save_rows({"rows": 1}, tmp_path)  # type: ignore[arg-type]
    assert saved_rows.load_rows(tmp_path, digest) == {"rows": 1}
    saved_rows.load_rows.cache_clear()
    (tmp_path / "rows.pickle").write_bytes(pickle.dumps("other"))
    with pytest.raises(DataError, match=r"rows\.pickle: changed since it was written"):
        saved_rows.load_rows(tmp_path, digest)
