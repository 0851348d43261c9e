"""The memory that is given, and what it is enough for."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import packtool
from packtool.engines import Threads
from packtool.errors import UsageError
from packtool.writing import memory
from tests.stores import contents
from tests.writing.cases import KINDS


def test_too_little_memory(store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_MOST_BITS", 5)
    packtool.pack(store, tmp_path / "corpus", shuffle=False, **KINDS["concat-8"])
    with pytest.raises(
        UsageError,
        match=r"memory: 100 B for 2 workers is too little to shuffle this dataset; a number without a unit is bytes",
    ) as caught:
        packtool.shuffle(tmp_path / "corpus", tmp_path / "out", memory=100, workers=2)
    assert caught.value.code == "memory-too-small"
    least = str(caught.value).split("at least ")[1].split(",")[0]
    packtool.shuffle(tmp_path / "corpus", tmp_path / "out", memory=least, workers=2, resume=True)


def test_too_little_memory_leaves_what_is_there(store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_MOST_BITS", 5)
    options = KINDS["concat-8"]
    packtool.pack(store, tmp_path / "old", **options)
    packtool.pack(store, tmp_path / "corpus", shuffle=False, **options)
    there = contents(tmp_path / "old")
    with pytest.raises(UsageError, match="is too little to shuffle"):
        packtool.pack(store, tmp_path / "old", **options, seed=1, memory=100, workers=2, overwrite=True)
    with pytest.raises(UsageError, match="is too little to shuffle"):
        packtool.shuffle(tmp_path / "corpus", tmp_path / "new", memory=100, workers=2)
    assert contents(tmp_path / "old") == there
    assert not (tmp_path / "new").exists()
    packtool.pack(store, tmp_path / "old", **options, seed=1, overwrite=True)
    packtool.pack(store, tmp_path / "new", **options, seed=1)
    assert contents(tmp_path / "old") == contents(tmp_path / "new")


def test_memory_decides_whether_rows_move_twice(store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object, **__: object) -> None:
        raise AssertionError("partitioned")

    packtool.pack(store, tmp_path / "corpus", shuffle=False, **KINDS["concat"])
    monkeypatch.setattr("packtool.writing.shards.partition", never)
    packtool.shuffle(tmp_path / "corpus", tmp_path / "whole", memory="1MB")
    with pytest.raises(AssertionError, match="partitioned"):
        packtool.shuffle(tmp_path / "corpus", tmp_path / "parts", memory="1kB")


class Sized:
    """As much of a source as a budget asks for."""

    memory_bytes = 1 << 20
    unit_bytes = 128
    segments: int | None = None
    plan = SimpleNamespace(units=1000)


@pytest.mark.parametrize(
    ("granted", "workers", "bits"), [(1 << 20, 1, 3), (1 << 18, 1, 5), (1 << 18, 2, 6), (1 << 30, 1, 1)]
)
def test_partitions_and_what_sorts_them_fit_for_every_worker(granted: int, workers: int, bits: int) -> None:
    budget = memory.Budget(granted, Threads(workers))
    source: Any = Sized()
    assert budget.holds(source) == (granted >= source.memory_bytes)
    assert budget.partition_bits(source) == bits
    assert workers * source.memory_bytes / (1 << bits) <= granted / 2
    assert budget.block_units(source) == min(granted // (8 * workers), 1 << 24) // (128 + 256)
    source.segments = 5000  # five a unit
    assert budget.block_units(source) == min(granted // (8 * workers), 1 << 24) // (128 + 256 + 5 * 128)
