"""Beyond memory: the same bytes as in memory, for any number of parts, tasks and workers, and after a kill."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import packtool
from packtool.errors import DataError, UsageError
from packtool.shuffling.atom import atom_shuffles
from packtool.shuffling.permutation import keys
from packtool.storage.packed import PackedDataset
from packtool.writing import first_pass, memory
from packtool.writing.input_check import InputCheck
from packtool.writing.packed_source import PackedSource
from packtool.writing.second_pass import PartitionedRows
from packtool.writing.stored_plan import stored_plans
from tests.commands.test_shuffle import contents
from tests.stores import write_store

LENGTHS = np.random.default_rng(1).integers(1, 200, 150).tolist()
KINDS: dict[str, dict[str, Any]] = {
    "concat-8": {"strategy": "concat", "sequence_length": 64, "atom_size": 8},
    "concat": {"strategy": "concat", "sequence_length": 64},
    "concat-192": {"strategy": "concat", "sequence_length": 64, "atom_size": 192},
    "concat-plain": {"strategy": "concat", "sequence_length": 64, "segments": False},
    "padding-16": {"strategy": "padding", "sequence_length": 64, "atom_size": 16},
    "padding-128": {"strategy": "padding", "sequence_length": 64, "atom_size": 128},
    "seamless": {"strategy": "seamless", "sequence_length": 64, "max_repetition": "0.5"},
    "buckets": {"strategy": "buckets", "buckets": (16, 64)},
}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_store(tmp_path_factory.mktemp("partition") / "store", LENGTHS, per_shard=40)


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


def test_memory_decides_the_path(store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packtool.pack(store, tmp_path / "corpus", shuffle=False, **KINDS["concat"])
    monkeypatch.setattr("packtool.writing.buckets.partition", _never)
    packtool.shuffle(tmp_path / "corpus", tmp_path / "whole", memory="1MB")
    with pytest.raises(AssertionError, match="partitioned"):
        packtool.shuffle(tmp_path / "corpus", tmp_path / "parts", memory="1kB")


def _never(*_: object, **__: object) -> None:
    raise AssertionError("partitioned")


def test_too_little_memory(store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_MOST_BITS", 5)
    packtool.pack(store, tmp_path / "corpus", shuffle=False, **KINDS["concat-8"])
    with pytest.raises(
        UsageError, match=r"--memory: 100 B for 2 workers are too little .* Give at least .* kB"
    ) as caught:
        packtool.shuffle(tmp_path / "corpus", tmp_path / "out", memory=100, workers=2)
    assert caught.value.code == "memory-too-small"
    least = str(caught.value).split("at least ")[1].split(",")[0]
    packtool.shuffle(tmp_path / "corpus", tmp_path / "out", memory=least, workers=2, resume=True)


def test_equal_keys_go_by_index(store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def few(seed: int, purpose: int, epoch: int, first: int, count: int) -> Any:
        return keys(seed, purpose, epoch, first, count) >> np.uint64(62) << np.uint64(62)

    monkeypatch.setattr("packtool.shuffling.atom.keys", few)
    monkeypatch.setattr("packtool.shuffling.permutation.keys", few)
    packtool.pack(store, tmp_path / "corpus", shuffle=False, **KINDS["concat-8"])
    packtool.shuffle(tmp_path / "corpus", tmp_path / "whole")
    packtool.shuffle(tmp_path / "corpus", tmp_path / "parts", memory=30_000)
    assert contents(tmp_path / "parts") == contents(tmp_path / "whole") != contents(tmp_path / "corpus")


def test_finished_parts_and_shards_are_not_done_again(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(first_pass, "_TASK_BYTES", 4000)
    options = {**KINDS["concat-8"], "shard_tokens": 64 * 15}
    packtool.pack(store, tmp_path / "corpus", shuffle=False, **options)
    packtool.shuffle(tmp_path / "corpus", tmp_path / "expected")
    run: dict[str, Any] = {"memory": 30_000, "workers": 1}

    read = _counting(monkeypatch, "packtool.writing.first_pass.scratch.append", fail_at=800)
    with pytest.raises(OSError, match="counted"):
        packtool.shuffle(tmp_path / "corpus", tmp_path / "out", **run)
    notes = sorted((tmp_path / "out" / "unfinished").rglob("task-*.json"))
    assert notes
    assert not (tmp_path / "out" / "manifest.json").exists()
    read.calls = 0
    written = _counting(monkeypatch, "packtool.writing.shards.PackedShardWriter", fail_at=3)
    with pytest.raises(OSError, match="counted"):
        packtool.shuffle(tmp_path / "corpus", tmp_path / "out", resume=True, **run)
    done = len(list((tmp_path / "out" / "unfinished").rglob("shard-*.json")))
    assert done >= 2
    assert read.calls > 0

    read.calls = written.calls = 0
    packtool.shuffle(tmp_path / "corpus", tmp_path / "out", resume=True, **run)
    assert read.calls == 0
    shards = len(PackedDataset(tmp_path / "expected").buckets[0].shards)
    assert written.calls == shards - done > 0
    assert contents(tmp_path / "out") == contents(tmp_path / "expected")
    assert not (tmp_path / "out" / "unfinished").exists()
    packtool.shuffle(tmp_path / "corpus", tmp_path / "out", resume=True, **run)
    assert written.calls == shards - done


class _Counting:
    calls = 0


def _counting(monkeypatch: pytest.MonkeyPatch, name: str, fail_at: int) -> _Counting:
    """Count the calls of a function; the call of this number fails, once."""
    module, _, attribute = name.rpartition(".")
    target: Any = packtool
    for part in module.split(".")[1:]:
        target = getattr(target, part)
    original: Callable[..., Any] = getattr(target, attribute)
    count, failed = _Counting(), False

    def counted(*args: Any, **kwargs: Any) -> Any:
        nonlocal failed
        count.calls += 1
        if count.calls == fail_at and not failed:
            failed = True
            raise OSError("counted")
        return original(*args, **kwargs)

    monkeypatch.setattr(target, attribute, counted)
    return count


@pytest.mark.parametrize("kind", ["concat-8", "buckets"])
@pytest.mark.parametrize("memory", ["20kB", "1GB"])
def test_killed_and_resumed(store: Path, tmp_path: Path, kind: str, memory: str) -> None:
    packtool.pack(store, tmp_path / "corpus", shuffle=False, shard_tokens=64 * 30, **KINDS[kind])
    packtool.shuffle(tmp_path / "corpus", tmp_path / "expected", seed=9)
    command = [str(tmp_path / "corpus"), "-o", str(tmp_path / "out"), "--seed", "9", "--memory", memory, "-q"]
    for syncs in (3, 14):
        # Killed while it makes a file durable: whatever it was doing stays half done.
        program = (
            "import os, signal, sys\n"
            "from packtool.cli import run\n"
            f"left, sync = [{syncs}], os.fsync\n"
            "def fsync(handle):\n"
            "    left[0] -= 1\n"
            "    os.kill(os.getpid(), signal.SIGKILL) if left[0] == 0 else sync(handle)\n"
            "os.fsync = fsync\n"
            "sys.exit(run(sys.argv[1:]))\n"
        )
        resume = ["--resume"] if (tmp_path / "out").exists() else []
        killed = subprocess.run([sys.executable, "-c", program, "shuffle", *command, *resume], check=False)
        assert killed.returncode == -signal.SIGKILL
        assert not (tmp_path / "out" / "manifest.json").exists()
    subprocess.run([sys.executable, "-m", "packtool", "shuffle", *command, "--resume"], check=True, env=os.environ)
    assert contents(tmp_path / "out") == contents(tmp_path / "expected")
    assert packtool.verify(tmp_path / "out").problems == []


def test_partitions_go_when_their_rows_are_written(store: Path, tmp_path: Path) -> None:
    packtool.pack(store, tmp_path / "corpus", shuffle=False, **KINDS["concat-8"])
    (plan,) = stored_plans(PackedDataset(tmp_path / "corpus"))
    (shuffle,) = atom_shuffles([plan], seed=42)
    source = PackedSource(plan, 0)
    budget = memory.Budget(50_000, 1)
    with InputCheck([]) as check:
        partitions = first_pass.partition(
            source, shuffle.keys(), tmp_path / "scratch", budget=budget, progress=lambda _: None, input_check=check
        )
    rows = PartitionedRows(source, partitions, None)
    counts = [len(list((tmp_path / "scratch").rglob("*.atoms")))]
    third = plan.rows // 3
    for written in [(2 * third, plan.rows), (0, third), (third, 2 * third)]:
        rows.written(*written)
        counts.append(len(list((tmp_path / "scratch").rglob("*.atoms"))))
        if written == (0, third):  # what is left still serves the rows between
            assert sum(len(tokens) for _, tokens in rows.batches(third, 2 * third)) == third * 8
    assert counts[0] > counts[1] > counts[2] > counts[3] == 0


def test_a_partition_that_changed_since(store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packtool.pack(store, tmp_path / "corpus", shuffle=False, **KINDS["concat"])
    _counting(monkeypatch, "packtool.writing.shards.PackedShardWriter", fail_at=1)
    with pytest.raises(OSError, match="counted"):
        packtool.shuffle(tmp_path / "corpus", tmp_path / "out", memory=20_000)
    file = min((tmp_path / "out" / "unfinished").rglob("*.atoms"))
    file.write_bytes(file.read_bytes()[:-5])
    with pytest.raises(DataError, match="has changed since it was written") as caught:
        packtool.shuffle(tmp_path / "corpus", tmp_path / "out", memory=20_000, resume=True)
    assert caught.value.code == "damaged-scratch"


def test_scanning_is_reading(store: Path, tmp_path: Path) -> None:
    packtool.pack(store, tmp_path / "corpus", shuffle=False, **KINDS["concat-8"])
    (plan,) = stored_plans(PackedDataset(tmp_path / "corpus"))
    whole = plan.segments(np.arange(plan.units))
    for first, last in [(0, plan.units), (3, 3), (5, 29), (plan.units - 3, plan.units)]:
        piece = plan.scan(first, last)
        for name in ("document", "start", "length", "repeated", "offsets"):
            np.testing.assert_array_equal(getattr(piece, name), getattr(whole[first:last], name))
