"""The memory that is given, and what it is enough for."""

from contextlib import AbstractContextManager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import packtool
from packtool.engines import Threads
from packtool.errors import UsageError
from packtool.formats.packed import PackedDataset
from packtool.planning.arrays import Arrays
from packtool.rows.stored_plan import stored_plans
from packtool.rows.unit_source import PackedSource
from packtool.writing import memory
from packtool.writing.array_files import temporary_arrays
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


def test_what_memory_holds_decides_where_arrays_lie(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In memory where tokens fit, or, without tokens, where segments and order do; else in files."""
    packtool.pack(store, tmp_path / "corpus", shuffle=False, **KINDS["concat"])
    [plan] = stored_plans(PackedDataset(tmp_path / "corpus"))
    source = PackedSource(plan, 0)
    on_disk: list[Path] = []

    def recorded(directory: Path) -> AbstractContextManager[Arrays]:
        on_disk.append(directory)
        return temporary_arrays(directory)

    monkeypatch.setattr("packtool.writing.shards.temporary_arrays", recorded)
    for granted, index_only, files in (
        (source.memory_bytes, False, 0),
        (source.memory_bytes - 1, False, 1),
        (source.index_bytes, True, 0),
        (source.index_bytes - 1, True, 1),
    ):
        on_disk.clear()
        options: dict[str, Any] = {"index_only": True, "store": store} if index_only else {}
        packtool.shuffle(tmp_path / "corpus", tmp_path / "out", memory=granted, overwrite=True, workers=1, **options)
        assert len(on_disk) == files


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
