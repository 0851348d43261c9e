"""A store to pack, and other processes that do it."""

import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from packtool import engines
from packtool.engines import Engine, Worker, sending
from packtool.engines.engine import NO_OPTIONS, RunOptions
from packtool.formats import names as names_of
from tests.stores import write_store

LENGTHS = np.random.default_rng(1).integers(1, 200, 150).tolist()


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_store(tmp_path_factory.mktemp("partition") / "store", LENGTHS, per_shard=40)


@pytest.fixture
def anyone(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """In place of a cluster: every task goes through pickle as to another process, and runs twice. The tasks."""
    seen: list[Any] = []

    class Anyone(Engine):
        shares_memory = shares_directories = False

        def __init__(self, scheduler: str, workers: int, *_: object) -> None:
            assert scheduler == "anyone"
            super().__init__(workers)

        def run(self, function: Any, tasks: Any, options: RunOptions = NO_OPTIONS) -> Any:
            with sending.sent(function, options.work) as call:
                for number, task in enumerate(tasks):
                    seen.append(task)
                    sending.load.cache_clear()
                    for _again in range(2):
                        there, same = pickle.loads(pickle.dumps((call, task)))
                        result = there(same, Worker(options.on_advance))
                    assert isinstance(call, sending.Saved)
                    ours = next(each for each in call.directory.parents if each.name == "unfinished")
                    for directory, _names, files in os.walk(ours):  # what a run that is killed here leaves behind
                        for file in files:
                            name = str(Path(directory, file).relative_to(ours))
                            assert names_of.is_ours(f"unfinished/{name}"), name
                    yield number, result

    monkeypatch.setattr(engines, "Cluster", Anyone)
    return seen
