"""Datasets of every kind, for tests that damage them."""

import shutil
from pathlib import Path

import pytest

import packtool
from tests.making import Make

LENGTHS = [5, 17, 2, 40, 9, 33, 8, 3, 12]


@pytest.fixture(scope="session")
def sound(make: Make, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store, a packed dataset of one length and one of several, batches of these, and an export."""
    packed = {"strategy": "bfd", "sequence_length": 16, "shard_tokens": 64}
    several = {"strategy": "decompose", "sequence_length": 16}
    place = make(LENGTHS, packed=packed, several=several, at=tmp_path_factory.mktemp("sound"))
    packtool.shuffle(place / "several", place / "batched", method="bucket", batch_tokens=32)
    packtool.export(place / "packed", place / "export", format="megatron")
    return place


@pytest.fixture
def made(sound: Path, tmp_path: Path) -> Path:
    """Copies of these, to damage."""
    return Path(shutil.copytree(sound, tmp_path, dirs_exist_ok=True))
