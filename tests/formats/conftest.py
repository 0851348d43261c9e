"""Datasets of every kind, for tests that damage them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import packtool
from tests.stores import write_store

LENGTHS = [5, 17, 2, 40, 9, 33, 8, 3, 12]


@pytest.fixture(scope="session")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store, a packed dataset of one and one of several lengths."""
    place = tmp_path_factory.mktemp("sound")
    store = write_store(place / "store", LENGTHS)
    packtool.pack(store, place / "packed", strategy="bfd", sequence_length=16, shard_tokens=64)
    packtool.pack(store, place / "several", strategy="decompose", sequence_length=16)
    return place


@pytest.fixture
def made(sound: Path, tmp_path: Path) -> Path:
    """Copies of these, to damage."""
    return Path(shutil.copytree(sound, tmp_path, dirs_exist_ok=True))
