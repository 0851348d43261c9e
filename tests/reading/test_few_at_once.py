"""The files of a dataset: found damaged on opening, mapped when needed, few at once."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import packtool
from packtool.errors import DataError
from packtool.reading.recipe import MAPPED
from tests.reading.opening import opened
from tests.stores import write_store


def test_a_missing_or_short_shard_is_found_on_opening(packed: dict[str, Path], tmp_path: Path) -> None:
    shutil.copytree(packed["rows"], tmp_path / "p")
    file = tmp_path / "p" / "tokens-00001.npy"
    whole = file.read_bytes()
    file.write_bytes(whole[:-2])
    with pytest.raises(DataError, match=rf"tokens-00001.npy: has {len(whole) - 2} bytes, but the manifest says"):
        packtool.open(tmp_path / "p")
    file.unlink()
    with pytest.raises(DataError, match=r"tokens-00001.npy: named in the manifest, but not there"):
        packtool.open(tmp_path / "p")


def files() -> int:
    """How many files this process has open."""
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def test_shards_are_mapped_when_needed_and_few_at_once(tmp_path: Path) -> None:
    """A thousand shards, without a thousand open files."""
    store = write_store(tmp_path / "store", [16] * (MAPPED + 44), per_shard=100)
    options = {"sequence_length": 16, "shard_tokens": 16, "shuffle": False}
    packtool.pack(store, tmp_path / "p", strategy="concat", **options)
    before = files()
    dataset = opened(tmp_path / "p")
    assert files() == before
    assert len(dataset[:]) == MAPPED + 44
    assert files() - before <= MAPPED
